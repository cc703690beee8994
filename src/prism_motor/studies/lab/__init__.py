"""The laboratory: on which small problems of known structure do products pay, and how built?"""
