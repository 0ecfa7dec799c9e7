// Package shelf keeps small what the caches hold. A controller that watches ten thousand objects with all their
// children holds a hundred thousand of them in memory, nearly all alike and nearly all at rest: as Go structures they
// take kilobytes each, most of it empty fields.
//
// On the shelf lies the encoded form of an object, and of that only what sets it apart from a sample, the first object
// of its kind and component that was seen. It is unpacked when somebody reads it; the informers, their events and their
// keys work on the packed form.
package shelf
