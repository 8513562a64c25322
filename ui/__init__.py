"""What the explorer's pages share: limits, the view's state, model cache, components, export.

Everything here may import Streamlit; nothing in ``bert_tf`` does.
"""
