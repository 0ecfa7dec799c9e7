// Package restart kills the API server in the middle of stories, and starts it again after a while with the same store.
//
// Unlike a wire that is cut (package views), this takes it away from everybody: watches of all break, the Job and
// Deployment controllers stand still too, and who comes back first finds the others where they were.
package restart
