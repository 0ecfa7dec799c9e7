package main

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/c5c3/openstack-upgrade/test/traffic/ledger"
)

// identity asks an Identity API.
type identity struct {
	books          *ledger.Ledger
	user, password string

	tokens   kept[token]
	projects kept[row]
}

// token is what a password was answered with. Its secret is the token itself, and the audit id names it within the
// service: a token that validates as another one is not valid.
type token struct {
	secret, audit string
	issued        time.Time
}

type tokenAnswer struct {
	Token struct {
		AuditIDs []string `json:"audit_ids"`
		User     struct{ Name string }
	}
}

func (i *identity) created() int { return len(i.projects.all()) }

// turn gets a token, has it validated, has an older one validated with it, and creates and reads a project.
func (i *identity) turn(ctx context.Context, c *client, n int) {
	fresh, err := i.issue(ctx, c)
	if err != nil {
		return
	}
	_ = i.validate(ctx, c, "validate", fresh, fresh)
	if before, ok := i.tokens.older(n); ok {
		_ = i.validate(ctx, c, "validate older", fresh, before)
	}
	i.tokens.add(fresh)
	if made, err := i.create(ctx, c, fresh, fmt.Sprintf("traffic-%d-%d", began, n)); err == nil {
		_ = i.read(ctx, c, fresh, made)
		i.projects.add(made)
	}
}

func (i *identity) issue(ctx context.Context, c *client) (token, error) {
	made := token{issued: time.Now()}
	var answer tokenAnswer
	domain := map[string]string{"id": "default"}
	err := c.do(ctx, call{
		kind: "issue", method: http.MethodPost, path: "/v3/auth/tokens", want: http.StatusCreated, into: &answer,
		body: map[string]any{"auth": map[string]any{
			"identity": map[string]any{"methods": []string{"password"}, "password": map[string]any{
				"user": map[string]any{"name": i.user, "domain": domain, "password": i.password}}},
			"scope": map[string]any{"project": map[string]any{"name": i.user, "domain": domain}},
		}},
		check: func(header http.Header) error {
			made.secret = header.Get("X-Subject-Token")
			if made.secret == "" || len(answer.Token.AuditIDs) == 0 || answer.Token.User.Name != i.user {
				return fmt.Errorf("asked for a token of %s and got %+v", i.user, answer)
			}
			made.audit = answer.Token.AuditIDs[0]
			return nil
		},
	})
	return made, err
}

func (i *identity) validate(ctx context.Context, c *client, kind string, with, subject token) error {
	var answer tokenAnswer
	return c.do(ctx, call{
		kind: kind, method: http.MethodGet, path: "/v3/auth/tokens", want: http.StatusOK, into: &answer,
		header: map[string]string{"X-Auth-Token": with.secret, "X-Subject-Token": subject.secret},
		check: func(http.Header) error {
			if got := answer.Token.AuditIDs; len(got) == 0 || got[0] != subject.audit || answer.Token.User.Name != i.user {
				return fmt.Errorf("the token %s of %s validates as %+v", subject.audit, i.user, answer)
			}
			return nil
		},
	})
}

type project struct {
	Project row `json:"project"`
}

func (i *identity) create(ctx context.Context, c *client, with token, name string) (row, error) {
	var made project
	err := c.do(ctx, call{
		kind: "create", method: http.MethodPost, path: "/v3/projects", want: http.StatusCreated, into: &made,
		header: map[string]string{"X-Auth-Token": with.secret}, body: project{row{Name: name}},
		check: func(http.Header) error {
			if made.Project.ID == "" || made.Project.Name != name {
				return fmt.Errorf("asked for a project %s and got %+v", name, made)
			}
			return nil
		},
	})
	return made.Project, err
}

func (i *identity) read(ctx context.Context, c *client, with token, wanted row) error {
	var found project
	return c.do(ctx, call{
		kind: "read", method: http.MethodGet, path: "/v3/projects/" + wanted.ID, want: http.StatusOK, into: &found,
		header: map[string]string{"X-Auth-Token": with.secret},
		check: func(http.Header) error {
			if found.Project != wanted {
				return fmt.Errorf("asked for %+v and got %+v", wanted, found.Project)
			}
			return nil
		},
	})
}

// firstTokens is how many of the tokens that were issued first are looked at in the end: with an upgrade in between,
// the older release has issued them.
const firstTokens = 20

// sweep looks for every project, and has the first tokens validated.
func (i *identity) sweep(ctx context.Context, c *client) {
	with, err := i.issue(ctx, c)
	if err != nil {
		return
	}
	var found struct{ Projects []row }
	err = c.do(ctx, call{kind: "sweep", method: http.MethodGet, path: "/v3/projects", want: http.StatusOK, into: &found,
		header: map[string]string{"X-Auth-Token": with.secret}})
	there := map[row]bool{}
	for _, r := range found.Projects {
		there[r] = true
	}
	for _, r := range i.projects.all() {
		if err == nil && !there[r] {
			i.books.Lose(time.Now(), fmt.Sprintf("project %s (%s) was created and is not listed any more", r.Name, r.ID))
		}
	}
	tokens := i.tokens.all()
	for _, t := range tokens[:min(len(tokens), firstTokens)] {
		if err := i.validate(ctx, c, "validate first", with, t); err != nil {
			i.books.Lose(time.Now(), fmt.Sprintf("the token %s, issued %s ago, is not valid any more", t.audit, time.Since(t.issued).Round(time.Second)))
		}
	}
}
