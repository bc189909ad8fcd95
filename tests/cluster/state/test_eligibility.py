"""Who is in sync, who may lead and who does, as transcripts (see `transcripts`)."""

from tests.cluster.transcripts import checked


def test_the_last_replica_of_kip_966_and_the_one_that_left_before_it_may_both_lead() -> None:
    checked("""
        starts 1,2,3 least 2 | 1@0 isr=1,2,3
        goes 3               | 1@0 isr=1,2
        goes 2               | 1@0 isr=1 elr=2
        goes 1               | -@1 isr= elr=1,2
        back 3               | -@1 isr= elr=1,2
        back 2               | 2@2 isr=2 elr=1
        2 asks 2,3           | 2@2 isr=2,3
        back 1               | 2@2 isr=2,3
        2 asks 1,2,3         | 2@2 isr=1,2,3
    """)


def test_the_last_replica_that_lost_its_records_leaves_the_one_that_left_before_it() -> None:
    checked("""
        starts 1,2,3 least 2 | 1@0 isr=1,2,3
        goes 3               | 1@0 isr=1,2
        goes 2               | 1@0 isr=1 elr=2
        goes 1               | -@1 isr= elr=1,2
        back 1 lost          | -@1 isr= elr=2 last=1
        back 3 lost          | -@1 isr= elr=2 last=1
        back 2               | 2@2 isr=2 last=1
        2 asks 1,2           | 2@2 isr=1,2
    """)


def test_when_all_have_lost_records_the_longest_log_leads_once_all_are_here() -> None:
    checked("""
        starts 1,2,3 least 2        | 1@0 isr=1,2,3
        goes 3                      | 1@0 isr=1,2
        goes 1,2                    | -@1 isr= elr=1,2
        back 1 lost                 | -@1 isr= elr=2 last=1
        longest 1=0:90              | -@1 isr= elr=2 last=1
        back 2 lost                 | -@1 isr= last=1,2
        back 3                      | -@1 isr= last=1,2
        longest 1=0:90 3=0:99       | -@1 isr= last=1,2
        longest 1=0:90 2=0:95 3=0:7 | 2@2 isr=2 last=1
        goes 2                      | -@3 isr= elr=2 last=1
        back 2 lost                 | -@3 isr= last=1,2
        longest 1=2:96 2=0:99       | 1@4 isr=1 last=2
        1 asks 1,2                  | 1@4 isr=1,2
    """)


def test_with_one_in_sync_enough_nobody_else_may_lead() -> None:
    checked("""
        starts 1,2 least 1 | 1@0 isr=1,2
        goes 2             | 1@0 isr=1
        back 2             | 1@0 isr=1
        goes 1             | -@1 isr= elr=1
        longest 2=0:50     | -@1 isr= elr=1
        back 1             | 1@2 isr=1
    """)


def test_the_only_replica_leads_whenever_it_is_here_in_a_new_epoch() -> None:
    checked("""
        starts 1 least 2 | 1@0 isr=1
        goes 1           | -@1 isr= elr=1
        back 1           | 1@2 isr=1
        back 1           | 1@3 isr=1
        back 1 lost      | 1@4 isr=1
    """)


def test_a_leader_that_bounces_within_its_session_hands_over_and_rejoins_by_fetching() -> None:
    checked("""
        starts 1,2,3 least 2 | 1@0 isr=1,2,3
        back 1               | 2@1 isr=2,3
        1 asked 1,2,3        | FENCED_LEADER_EPOCH 2@1 isr=2,3
        2 asks 1,2,3         | 2@1 isr=1,2,3
    """)


def test_a_follower_that_bounces_within_its_session_is_counted_only_with_its_new_epoch() -> None:
    checked("""
        starts 1,2,3 least 2 | 1@0 isr=1,2,3
        goes 3               | 1@0 isr=1,2
        back 2               | 1@0 isr=1 elr=2
        1 asked 1,2          | INVALID_UPDATE_VERSION 1@0 isr=1 elr=2
        1 asks 1,2           | 1@0 isr=1,2
    """)


def test_a_replaced_disk_of_kip_903_is_not_in_sync_by_what_it_had_before() -> None:
    checked("""
        starts 1,2 least 1 | 1@0 isr=1,2
        1 asks 1           | 1@0 isr=1
        back 2 lost        | 1@0 isr=1
        1 asked 1,2        | INELIGIBLE_REPLICA 1@0 isr=1
        1 asks 1,2         | 1@0 isr=1,2
    """)


def test_a_fail_over_twice_with_an_unclean_election_forgets_who_had_more() -> None:
    checked("""
        starts 1,2,3 least 1        | 1@0 isr=1,2,3
        1 asks 1,2                  | 1@0 isr=1,2
        goes 1                      | 2@1 isr=2
        goes 2                      | -@2 isr= elr=2
        longest 3=0:10              | -@2 isr= elr=2
        unclean 3=0:10              | 3@3 isr=3
        back 2                      | 3@3 isr=3
        goes 3                      | -@4 isr= elr=3
        unclean 2=1:50              | 2@5 isr=2
        back 3                      | 2@5 isr=2
        2 asks 2,3                  | 2@5 isr=2,3
    """)


def test_an_unclean_election_takes_the_longest_of_those_that_are_here() -> None:
    checked("""
        starts 1,2,3 least 1        | 1@0 isr=1,2,3
        1 asks 1                    | 1@0 isr=1
        unclean 2=9:9               | 1@0 isr=1
        goes 1                      | -@1 isr= elr=1
        unclean 2=0:10 3=0:11       | 3@2 isr=3
    """)


def test_eligible_leaders_last_only_while_the_watermark_stands_still() -> None:
    checked("""
        starts 1,2,3 least 3 | 1@0 isr=1,2,3
        goes 3               | 1@0 isr=1,2 elr=3
        goes 2               | 1@0 isr=1 elr=2,3
        least 2              | 1@0 isr=1 elr=2,3
        least 1              | 1@0 isr=1
        least 3              | 1@0 isr=1
    """)


def test_a_leader_may_shrink_and_grow_its_isr_and_nothing_else() -> None:
    checked("""
        starts 1,2,3 least 2 | 1@0 isr=1,2,3
        1 asks 1             | 1@0 isr=1 elr=2,3
        1 asks 1             | 1@0 isr=1 elr=2,3
        1 asks 3,1           | 1@0 isr=1,3
        2 asks 2             | INVALID_REQUEST 1@0 isr=1,3
        1 asks 3             | INVALID_REQUEST 1@0 isr=1,3
        1 asks 1,1           | INVALID_REQUEST 1@0 isr=1,3
        1 asks 1,7           | INVALID_REQUEST 1@0 isr=1,3
        goes 2               | 1@0 isr=1,3
        1 asks 1,2,3         | INELIGIBLE_REPLICA 1@0 isr=1,3
    """)
