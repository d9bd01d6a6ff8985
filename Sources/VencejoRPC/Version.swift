/// Of this stack, as it calls itself to peers.
public let version = "0.1.0"
