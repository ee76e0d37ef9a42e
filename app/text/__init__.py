"""How values read: one rule each, for the command line, the pages, the plots and the scripts."""
