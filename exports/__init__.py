"""What other programs read: plan tables as bytes. Domain objects in, bytes out, and back."""
