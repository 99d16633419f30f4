package httpzoo

import "net/http"

type AS struct{}

func (a *AS) resource(http.ResponseWriter, *http.Request, string) bool { return false }
func (a *AS) allowed(http.ResponseWriter, *http.Request, string) bool  { return true }
