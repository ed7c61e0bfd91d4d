"""Tables that are no file of columns: Arrow streams, CSV, and what is read again from a spool."""
