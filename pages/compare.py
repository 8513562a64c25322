import streamlit as st
def page():
    st.title("compare")
