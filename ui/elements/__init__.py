"""The project's Streamlit components (`assets/components`) and the data that they draw."""
