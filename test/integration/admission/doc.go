// Package admission asks a real API server what people ask it, with the real kubectl, while the real webhook answers over
// TLS: with the configuration that is shipped, but for the address it calls. What each layer answers is written down in
// testdata, to be read as a story.
package admission
