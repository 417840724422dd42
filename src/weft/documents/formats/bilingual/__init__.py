"""Files of two languages, with units that have a source and perhaps a target."""
