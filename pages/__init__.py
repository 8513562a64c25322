"""One module a page: state in, one Trace, figures out."""
