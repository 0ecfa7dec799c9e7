package integration

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"

	"github.com/c5c3/openstack-upgrade/shared/api/v1alpha1"
	"github.com/c5c3/openstack-upgrade/shared/upgrade"
	"github.com/c5c3/openstack-upgrade/test/build"
	"github.com/c5c3/openstack-upgrade/test/harness"
)

func TestBL01AFailedExpandIsSaidOnceAndRunAgainWhenItsJobIsDeleted(t *testing.T) {
	repair := func() {}
	s := expanding(t, func(s *scene) {
		repair = s.script(upgrade.Expand, harness.Fail(1, "(1419) You do not have the SUPER privilege; mysql+pymysql://glance:geheim@db/glance"))
	})
	g := s.await("the failure", says(upgrade.ExpandFailed, "2026.1 → 2026.2", "exit code 1: (1419) You do not have the SUPER privilege", "Fix the cause and delete Job images-db-expand to retry"))
	require.NotContains(t, database(g).Message, "geheim", "words of others are kept without credentials")
	failed := s.awaitJob(upgrade.Expand, "to have failed", hasFailed)
	require.EqualValues(t, 5, failed.Status.Failed)
	s.toldTimes("Warning ExpandFailed", 1)

	mark := s.Mark(t)
	s.holds(5*time.Second, "the failure", both(in(upgrade.Expanding), says(upgrade.ExpandFailed)))
	require.Empty(t, s.calls(mark), "nothing is tried and nothing repeated until somebody acts")
	require.Equal(t, failed.UID, s.job(upgrade.Expand).UID)
	require.Nil(t, s.job(upgrade.Migrate))
	require.Empty(t, rolledTo(old)(s.deployment()), "the old pods serve on")
	s.toldTimes("Warning ExpandFailed", 1)

	repair()
	mark = s.Mark(t)
	s.deleteJob(upgrade.Expand)
	s.await("the upgrade to end", rests("2026.2"))
	made := s.calls(mark).Where(harness.On("jobs"), harness.By("create"), func(c harness.Call) bool { return c.Name == "images-db-expand" })
	require.Len(t, made, 1, "exactly one Job more")
}

func TestBL17AFailureThatIsSaidInOtherWordsIsNotToldAgain(t *testing.T) {
	s := expanding(t, func(s *scene) { s.script(upgrade.Expand, harness.Fail(1, "no right to create triggers")) })
	s.await("the failure", says(upgrade.ExpandFailed, "no right to create triggers"))
	s.toldTimes("Warning ExpandFailed", 1)
	for _, pod := range s.pods(upgrade.Expand) { // and with them the words
		require.NoError(t, s.Client.Delete(t.Context(), &pod))
	}
	left := says(upgrade.ExpandFailed, "BackoffLimitExceeded")
	s.Eventually(t, harness.Patience, "the words that are left", func(context.Context) string {
		s.edit(build.Labels(map[string]string{"looked-at": time.Now().Format("150405")})) // a reason to look
		return left(s.now())
	})
	s.holds(2*time.Second, "the failure", says(upgrade.ExpandFailed))
	s.toldTimes("Warning ExpandFailed", 1)
}

func TestBL01AFailedContractLeavesTheNewPodsServingAndNothingPromoted(t *testing.T) {
	s := open(t)
	repair := s.script(upgrade.Contract, harness.Fail(1, "cannot drop trigger"))
	s.glance(build.Lockstep("2026.2")).record(walking(upgrade.RollingUpdate)).start()
	s.await("the failure", both(in(upgrade.Contracting), says(upgrade.ContractFailed, "cannot drop trigger")))
	s.holds(2*time.Second, "the failure", both(in(upgrade.Contracting), says(upgrade.ContractFailed)))
	require.Equal(t, "2026.1", s.now().Status.InstalledRelease)
	require.Empty(t, rolledTo(next)(s.deployment()))
	require.NotContains(t, s.told(), "Normal UpgradeComplete")
	repair()
	s.deleteJob(upgrade.Contract)
	s.await("the upgrade to end", rests("2026.2"))
	s.toldTimes("Normal UpgradeComplete", 1)
}

func TestBL03AFailureThatARetryHealsIsNoFailure(t *testing.T) {
	s := open(t)
	s.script(upgrade.Contract, harness.InTurn(harness.Fail(1, "expand has not run yet, says a lagging database node"), harness.Fail(1, ""), harness.Succeed(0)))
	s.glance(build.Lockstep("2026.2")).record(walking(upgrade.RollingUpdate)).start()
	s.await("the upgrade to end", rests("2026.2"))
	require.EqualValues(t, 2, s.job(upgrade.Contract).Status.Failed)
	require.NotContains(t, s.told(), "Warning ContractFailed")
}

func TestBL03ATryThatFailedIsSaidWhileRetriesAreLeft(t *testing.T) {
	s := expanding(t, func(s *scene) {
		s.script(upgrade.Expand, harness.FailInRealTime(1, "duplicate column"))
	})
	s.await("the first try to be said", says(upgrade.ExpandInProgress, "1 of 5 tries failed: exit code 1: duplicate column"))
	require.NotContains(t, s.told(), "Warning ExpandFailed")
}

func TestAFailedJobIsReplacedWhenItsSettingsAreChanged(t *testing.T) {
	repair := func() {}
	s := expanding(t, func(s *scene) { repair = s.script(upgrade.Expand, harness.Fail(137, "")) })
	s.await("the failure", says(upgrade.ExpandFailed, "exit code 137"))
	repair()
	failed := s.job(upgrade.Expand)
	s.edit(build.JobDeadline(3600))
	s.await("the upgrade to end", rests("2026.2"))
	require.NotEqual(t, failed.UID, s.job(upgrade.Expand).UID)
	require.EqualValues(t, 3600, *s.job(upgrade.Expand).Spec.ActiveDeadlineSeconds)
}

func TestBL07ADeadlineThatIsAskedForFailsTheJobInTheJobControllersWords(t *testing.T) {
	s := expanding(t, func(s *scene) { s.script(upgrade.Expand, harness.Hang()) }, build.JobDeadline(2))
	s.await("the failure", says(upgrade.ExpandFailed, "DeadlineExceeded: Job was active longer than specified deadline"))
	s.toldTimes("Warning ExpandFailed", 1)
}

func TestBL07NoDeadlineIsSetUnlessAskedFor(t *testing.T) {
	s := expanding(t, func(s *scene) { s.script(upgrade.Expand, harness.Hang()) })
	job := s.awaitJob(upgrade.Expand, "to exist", exists)
	require.Nil(t, job.Spec.ActiveDeadlineSeconds)
	require.Nil(t, job.Spec.TTLSecondsAfterFinished, "the finished Job is evidence")
	s.await("since when it runs to be said", both(says(upgrade.ExpandInProgress), func(g *v1alpha1.Glance) string {
		return lacks(g.Status.PhaseStartTime != nil || strings.Contains(database(g).Message, "since"), "phase start %v, %s", g.Status.PhaseStartTime, database(g).Message)
	}))
}

func TestOnlyCompleteAndFailedWithStatusTrueAreFinal(t *testing.T) {
	s := expanding(t, func(s *scene) { s.script(upgrade.Expand, harness.Hang()) })
	s.awaitPod(upgrade.Expand, "to run", runs)
	s.await("the expansion to be reported", says(upgrade.ExpandInProgress))
	s.Eventually(t, harness.Patience, "conditions that mean nothing to be written", func(ctx context.Context) string {
		job := s.job(upgrade.Expand)
		job.Status.Conditions = append(job.Status.Conditions,
			batchv1.JobCondition{Type: batchv1.JobComplete, Status: "False"}, batchv1.JobCondition{Type: "Finished", Status: "True"}, batchv1.JobCondition{Type: batchv1.JobFailed, Status: "Unknown"})
		if err := s.Client.Status().Update(ctx, job); err != nil {
			return err.Error() // the Job controller was faster
		}
		return ""
	})
	s.holds(2*time.Second, "the phase", both(in(upgrade.Expanding), says(upgrade.ExpandInProgress)))
}
