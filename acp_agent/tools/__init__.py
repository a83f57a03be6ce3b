"""Tools: what one is (`base`), the built-in ones (`coding`), and a plain function as one (`function`)."""
