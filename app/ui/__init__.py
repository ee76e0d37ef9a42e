"""How answers and requests look: parts for terminal and page, forms, options, templates."""
