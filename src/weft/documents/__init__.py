"""Documents: segments to translate, inside what stays byte for byte.

A reader finds the text of a format and its tags; a driver gives the text to any translator, puts
the tags into what comes back, and the document writes it where the text stood.
"""
