"""The code that the pages share.

Folders: server (its start and end, its HTML page), shell (navigation, links, limits), session (models, caches, jobs),
widgets, elements (components), samples (example inputs). Every file here may import Streamlit; no file of ``bert_tf``
does.
"""
