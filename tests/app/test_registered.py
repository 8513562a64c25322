"""What the explorer's own components are given."""

from streamlit.testing.v1 import AppTest


def test_later_data_has_a_greater_number_and_the_same_data_the_same():
    def page():
        import streamlit as st

        from ui.elements.component_registry import _made

        st.session_state.made = [_made("one", {"text": text}) for text in "aabab"]
        st.session_state.other = _made("other", {"text": "a"})

    app = AppTest.from_function(page).run()
    made = app.session_state.made
    assert made[0] == made[1] < made[2] < made[3] < made[4]
    first, other = made[4], app.session_state.other
    made = app.run().session_state.made
    assert made[0] > first and app.session_state.other == other
