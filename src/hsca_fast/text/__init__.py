"""What a text is made of and how it hangs together."""
