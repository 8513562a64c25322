"""The frame around every page: navigation, links, limits, errors."""
