"""What a page worked out last, kept for the visitor until it is asked for something else."""

import streamlit as st


def kept(name, key, make):
    """The value that ``make()`` gave for ``key``; made anew when the key is another.

    Args:
        name: of the place: one value is held under each.
        key: what the value depends on; anything that compares.
        make: callable () -> value.
    """
    place = f"_kept_{name}"
    held = st.session_state.get(place)
    if held is None or held[0] != key:
        held = st.session_state[place] = (key, make())
    return held[1]
