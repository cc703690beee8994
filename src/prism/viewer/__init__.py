"""The live page: a policy walking in the browser."""
