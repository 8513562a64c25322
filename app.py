"""The entry point of the explorer: ``streamlit run app.py``.

Streamlit imports this file once for the server, and runs it as ``__main__`` in every run of a visit.
"""

import streamlit as st

from ui import first_paint

if __name__ == "__main__":
    st.set_page_config(page_icon=first_paint.ICON, layout="wide")
    first_paint.style()
    before_pages = first_paint.draw()

    # The first visit sees the title while these modules, and with them all pages, are imported.
    from streamlit.runtime.scriptrunner import get_script_run_ctx

    from ui.server import allocator, uploads
    from ui.session import jobs, memory_budget, model_store, state
    from ui.session.fair_lock import presses
    from ui.session.session_cache import visitor_cache
    from ui.shell import error_messages, frame, page_foot, sidebar
    from ui.widgets import history

    state.open_view()
    uploads.bound()
    allocator.prepare()
    memory_budget.note_visit()
    frame.open_example()

    def home():
        """Draw the page that the view names, and write the view into the address bar."""
        with presses().answered(get_script_run_ctx().session_id):
            visitor_cache().begin()
            jobs.begin()
            history.record()
            before_pages.empty()
            with error_messages.shown_errors():
                frame.draw_title()
                sidebar.draw(model_store.installed())
                frame.navigation()
                page_foot.begin()
                frame.draw_page()
                page_foot.draw()
                frame.long_link_note()
            jobs.end()
            visitor_cache().end()
            uploads.free()
            state.write_address()

    # The view names the page (?page=logit_lens), so all links have the same path. An address such as /logit_lens is
    # redirected to its page.
    front = st.Page(home, title=frame.window_title(), default=True)
    st.navigation([front, *frame.redirects(front)], position="hidden").run()
else:
    from starlette.middleware import Middleware

    from ui.server.first_frame import FirstFrame
    from ui.server.lifespan import lifespan, quiet

    quiet()
    app = st.App(__file__, lifespan=lifespan, middleware=[Middleware(FirstFrame)])
