from agentworld.domains.words import has_unseen_word, held_out_words, training_words


def test_the_words_of_training_and_of_held_out_episodes_are_parted():
    assert not has_unseen_word(" ".join(training_words()))
    assert all(map(has_unseen_word, held_out_words()))
