"""What the pages share: shell (frame, links), session (caches, models, jobs), widgets, elements (own components).

Everything here may import Streamlit; nothing in ``bert_tf`` does.
"""
