"""Tables, figures and one self-contained page from run folders."""
