// Package schema is the database of a drill and the way from each release's to the next: what the migrations of a real
// service are, in the shape that hurts most.
//
// Every release keeps the value of an image in a column of its own, written in its own way, and knows no other:
//
//	release   column        head after expand   head after contract
//	2026.1    value_2026_1  2026_1_expand01     2026_1_contract01
//	2026.2    value_2026_2  2026_2_expand01     2026_2_contract01
//	2027.1    value_2027_1  2027_1_expand01     2027_1_contract01
//
// Expand adds the new column and triggers that keep both in step, migrate fills the rows that were there before, and
// contract takes the triggers and the old column away: from then on nothing of the old release works. DDL is not
// transactional, so each statement stays once it ran, and the version is written last: an expand that is killed
// half-way finds its column there ever after.
//
// The version table is Alembic's, with a head for each branch while an upgrade is under way. Sync walks all revisions
// in one pass without ever touching a trigger.
package schema
