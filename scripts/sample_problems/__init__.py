"""The sample benchmark's source: one module per problem, named by its question id, and the recorded answers in `answers/`.

`scripts/make-sample` turns this into the checked-in files; nothing here is imported by the product.
"""
