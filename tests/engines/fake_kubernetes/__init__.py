"""A Kubernetes API server, its controllers and its nodes in one Python process, with a knob for each failure.

`FakeCluster` (`cluster.py`) is the entry. Containers are really executed, as processes of this machine. What the fake says
is compared with what real clusters said in `tests/engines/kubernetes_objects`.
"""
