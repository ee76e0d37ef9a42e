"""What other programs read: table files, and settings for the libraries that take them.

Domain objects in, text or bytes out, and settings back out of text.
"""
