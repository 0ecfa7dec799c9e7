package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// identities is an Identity API in memory, to which every token is known that it issued since the epoch.
type identities struct {
	mu       sync.Mutex
	asked    int
	epoch    int
	projects []row
	fault    func(n int, w http.ResponseWriter, r *http.Request) bool
}

func (a *identities) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked++
	if a.fault != nil && a.fault(a.asked, w, r) {
		return
	}
	name, single := strings.CutPrefix(r.URL.Path, "/v3/projects/")
	switch {
	case r.URL.Path == "/v3/auth/tokens" && r.Method == http.MethodPost:
		var asked struct {
			Auth struct {
				Identity struct {
					Password struct {
						User struct{ Name, Password string }
					}
				}
			}
		}
		_ = json.NewDecoder(r.Body).Decode(&asked)
		if user := asked.Auth.Identity.Password.User; user.Name != "admin" || user.Password != "secret" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.Header().Set("X-Subject-Token", fmt.Sprintf("%d/%d", a.epoch, a.asked))
		w.WriteHeader(http.StatusCreated)
		answerToken(w, a.asked)
	case !a.knows(r.Header.Get("X-Auth-Token")):
		w.WriteHeader(http.StatusUnauthorized)
	case r.URL.Path == "/v3/auth/tokens":
		var epoch, n int
		_, _ = fmt.Sscanf(r.Header.Get("X-Subject-Token"), "%d/%d", &epoch, &n)
		if epoch != a.epoch {
			http.NotFound(w, r)
			return
		}
		answerToken(w, n)
	case r.Method == http.MethodPost:
		var made project
		_ = json.NewDecoder(r.Body).Decode(&made)
		made.Project.ID = fmt.Sprintf("id-%d", a.asked)
		a.projects = append(a.projects, made.Project)
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(made)
	case single:
		for _, p := range a.projects {
			if p.ID == name {
				_ = json.NewEncoder(w).Encode(project{p})
				return
			}
		}
		http.NotFound(w, r)
	default:
		_ = json.NewEncoder(w).Encode(map[string]any{"projects": a.projects})
	}
}

func (a *identities) knows(token string) bool {
	return strings.HasPrefix(token, fmt.Sprintf("%d/", a.epoch))
}

func answerToken(w http.ResponseWriter, n int) {
	fmt.Fprintf(w, `{"token": {"audit_ids": ["audit-%d"], "user": {"name": "admin"}}}`, n)
}

func ofIdentity(o *options) { o.api, o.user, o.password = identityAPI, "admin", "secret" }

func TestAnIdentityAPIThatWorksFailsNothing(t *testing.T) {
	summary, _ := drive(t, &identities{}, ofIdentity)
	if !summary.Good() || summary.Sent < 50 || summary.Created == 0 {
		t.Errorf("%s; %s", summary, strings.Join(summary.Lines(), "\n"))
	}
	for _, kind := range []string{"issue", "validate", "validate older", "create", "read", "sweep", "validate first"} {
		if summary.Kinds[kind].Sent == 0 {
			t.Errorf("nothing of kind %q was sent", kind)
		}
	}
}

func TestATokenThatIsNotValidAnyMoreIsAFailureAndALoss(t *testing.T) {
	a := &identities{}
	a.fault = func(n int, _ http.ResponseWriter, _ *http.Request) bool {
		if n == 60 {
			a.epoch++
		}
		return false
	}
	summary, _ := drive(t, a, ofIdentity)
	if summary.Failed == 0 || summary.Lost == 0 {
		t.Errorf("%s, %d lost", summary, summary.Lost)
	}
	if summary.Kinds["validate older"].Failed == 0 || summary.Kinds["validate first"].Failed == 0 {
		t.Errorf("%+v", summary.Kinds)
	}
}

func TestATokenThatValidatesAsAnotherIsAFailure(t *testing.T) {
	fault := func(n int, w http.ResponseWriter, r *http.Request) bool {
		if n < 30 || r.URL.Path != "/v3/auth/tokens" || r.Method != http.MethodGet {
			return false
		}
		answerToken(w, -1)
		return true
	}
	if summary, _ := drive(t, &identities{fault: fault}, ofIdentity); summary.Kinds["validate"].Failed == 0 {
		t.Errorf("%s", summary)
	}
}

func TestAProjectThatVanishesIsLost(t *testing.T) {
	a := &identities{}
	a.fault = func(_ int, _ http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == "/v3/projects" && r.Method == http.MethodGet {
			a.projects = a.projects[1:]
		}
		return false
	}
	if summary, _ := drive(t, a, ofIdentity); summary.Lost != 1 || summary.Failed != 0 {
		t.Errorf("%s, %d lost", summary, summary.Lost)
	}
}

func TestAWrongPasswordFailsEveryRequest(t *testing.T) {
	summary, _ := drive(t, &identities{}, func(o *options) {
		ofIdentity(o)
		o.password = "other"
	})
	if summary.Failed == 0 || summary.Failed != summary.Sent {
		t.Errorf("%s", summary)
	}
}
