"""The items of a benchmark run: fetched, asked, judged and reported."""
