"""Components, controls and tables that several pages use."""
