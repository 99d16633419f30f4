package jsonrpc

// NotSent reports whether err guarantees that no byte of the request left the process, so that it may be sent again.
func NotSent(err error) bool { panic("to be built") }
