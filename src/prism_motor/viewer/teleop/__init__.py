"""The SO-101 twin in the browser, moved by a person who records demonstrations."""
