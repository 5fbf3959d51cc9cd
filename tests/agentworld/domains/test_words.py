from agentworld.domains.words import has_unseen_word, held_out_words, training_words


def test_training_words_and_held_out_words_are_disjoint():
    assert not has_unseen_word(" ".join(training_words()))
    assert all(map(has_unseen_word, held_out_words()))
