"""The glossary: the terms of the explorer, each in one or two short sentences, with the page where it is seen."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Term:
    """A term of the glossary.

    Attributes:
        name: the field's standard noun.
        others: plain names and other forms that a page may use. text: one or two short sentences.
        page: name of the page where it is seen.
    """

    name: str
    others: tuple[str, ...]
    text: str
    page: str


TERMS = (
    Term("Ablation", ("ablated", "switch off"), "Switching a part off to see what the answer loses by it.", "ablation"),
    Term(
        "Activation patching",
        ("patching", "causal tracing"),
        "Putting a vector from one text into the pass of another. If the answer changes, the vector carried it.",
        "patching",
    ),
    Term(
        "Add & norm",
        ("residual connection", "residual stream"),
        "A block's output is added to its input and the sum normalised. So a block changes a vector but replaces none.",
        "architecture",
    ),
    Term(
        "Attention head",
        ("attention heads",),
        "One of several attentions that work side by side in a layer, each with queries, keys and values of its own.",
        "all_heads",
    ),
    Term(
        "Attention rollout",
        ("rollout",),
        "The attention of all layers multiplied together: it estimates how much of each token reaches the last layer.",
        "attention_methods",
    ),
    Term(
        "Attention weight",
        ("attention weights", "attention"),
        "The share with which a token takes in another one. The weights of a token add up to 100%.",
        "all_heads",
    ),
    Term(
        "Bidirectional",
        ("bidirectionally",),
        "Reading the words before and after a position. BERT is bidirectional; a left-to-right model is not.",
        "directionality",
    ),
    Term(
        "Causal mask",
        ("causal",),
        "A rule that lets a token read only what stands before it, as in left-to-right models.",
        "directionality",
    ),
    Term(
        "Checkpoint",
        ("snapshot", "snapshots"),
        "A model's weights as they were at one moment of the training, in files.",
        "models",
    ),
    Term(
        "CKA",
        ("centered kernel alignment", "layer similarity"),
        "A measure of how alike two sets of vectors are, from 0 to 1, whatever their rotation and scale.",
        "layer_similarity",
    ),
    Term(
        "CLS token",
        ("[CLS]",),
        "The first token of every input. Its last vector stands for the whole input.",
        "predict",
    ),
    Term(
        "Concept activation vector",
        ("TCAV", "CAV"),
        "A direction in the space of hidden states that separates texts with a concept from others.",
        "tcav",
    ),
    Term(
        "Contextual embedding",
        ("contextual embeddings",),
        "A token's vector after the layers. Its neighbours change it: bank by a river differs from bank with money.",
        "word_senses",
    ),
    Term(
        "Corpus",
        ("pre-training text",),
        "The texts that a model is trained on.",
        "training_curves",
    ),
    Term(
        "Cosine similarity",
        ("cosine",),
        "How far two vectors point in the same direction: 1 is the same, 0 unrelated, −1 opposite.",
        "nearest_words",
    ),
    Term(
        "Counterfactual",
        ("counterfactuals", "minimal pair", "minimal pairs"),
        "The same text with one thing changed, to see what the change does to the answer.",
        "counterfactuals",
    ),
    Term(
        "Distillation",
        ("distilled", "student model"),
        "Training a small model to give the same probabilities as a large one.",
        "architectures",
    ),
    Term(
        "Embedding",
        ("embeddings", "token embedding"),
        "The vector that a token has in the model's table, before any layer.",
        "input_embeddings",
    ),
    Term(
        "Encoder",
        ("encoder layer",),
        "A stack of layers that turns tokens into vectors which know their context. BERT is an encoder.",
        "architecture",
    ),
    Term(
        "Entropy",
        (),
        "How spread out probabilities or weights are: 0 if all is on one, greater the more evenly they lie.",
        "head_profiles",
    ),
    Term(
        "Faithfulness",
        ("faithful",),
        "Whether an explanation names what the model really uses. It is tested by changing what it names.",
        "saliency",
    ),
    Term(
        "Feed-forward block",
        ("feed-forward", "FFN", "MLP"),
        "Two matrices with an activation between them, applied to each token by itself.",
        "architecture",
    ),
    Term(
        "Fine-tuning",
        ("fine-tuned", "fine-tune"),
        "Training a pre-trained model a little further for one task, with a small new head on top.",
        "fine_tune",
    ),
    Term("GELU", (), "BERT's activation: it keeps positive numbers and mutes negative ones smoothly.", "architecture"),
    Term(
        "Gradient",
        ("gradients", "gradient × input"),
        "How much the answer would change with a tiny change of each number of the input.",
        "saliency",
    ),
    Term(
        "Hidden state",
        ("hidden states",),
        "A token's vector after a layer: what the model knows about it there.",
        "logit_lens",
    ),
    Term(
        "int8",
        ("8 bits", "quantization", "quantized"),
        "Weights kept as whole numbers from −127 to 127 with a scale: a quarter of the memory, a little rounding.",
        "models",
    ),
    Term(
        "Integrated gradients",
        (),
        "Gradients added up on the way from an empty input to the real one. They share the answer out among tokens.",
        "saliency",
    ),
    Term(
        "Key",
        ("keys",),
        "The vector by which a token is found: a query is compared with it.",
        "neuron",
    ),
    Term(
        "Layer",
        ("layers", "encoder block"),
        "One attention and one feed-forward block, each with add & norm. BERT Base has 12, Large 24.",
        "architecture",
    ),
    Term(
        "Layer normalisation",
        ("layer norm", "LayerNorm"),
        "Bringing each token's vector to mean 0 and variance 1, then scaling it by learned numbers.",
        "architecture",
    ),
    Term(
        "Learning rate",
        ("learning rates",),
        "How large a step the weights take at each update of the training.",
        "training_curves",
    ),
    Term(
        "LIME",
        (),
        "Masks words at random many times and fits a simple sum to the answers. Its weights are the importances.",
        "saliency",
    ),
    Term(
        "Logit",
        ("logits",),
        "A score before the softmax. Only differences between logits matter.",
        "predict",
    ),
    Term(
        "Logit lens",
        ("lens",),
        "The head for masked words applied to an earlier layer: what the model would predict if it stopped there.",
        "logit_lens",
    ),
    Term(
        "Loss",
        ("cross-entropy",),
        "What the training makes small: the negative logarithm of the right answer's probability.",
        "training_curves",
    ),
    Term(
        "Mask token",
        ("[MASK]", "masked word", "masked words"),
        "The token that hides a word. The model predicts what stood there.",
        "predict",
    ),
    Term(
        "Masked language modelling",
        ("MLM",),
        "The task of predicting hidden words from the words on both sides. BERT was pre-trained on it.",
        "predict",
    ),
    Term(
        "Nat",
        ("nats",),
        "A unit of information: one nat less means a probability divided by 2.72.",
        "saliency",
    ),
    Term(
        "Next-sentence prediction",
        ("next sentence", "NSP"),
        "The task of telling whether text B followed text A. BERT's second pre-training task.",
        "predict",
    ),
    Term(
        "Occlusion",
        (),
        "Hiding one word at a time and measuring how the answer changes.",
        "saliency",
    ),
    Term(
        "Parameter",
        ("parameters",),
        "A number that training sets. BERT Base has about 110 million, Large about 340 million.",
        "architecture",
    ),
    Term(
        "Perplexity",
        (),
        "The exponential of the loss: among how many equally likely words the model hesitates.",
        "training_curves",
    ),
    Term(
        "Pooler",
        ("pooled output", "pooled"),
        "A matrix and a tanh over the last vector of [CLS]. Next sentence and classes are read from it.",
        "architecture",
    ),
    Term(
        "Position embedding",
        ("position embeddings",),
        "The vector of a position in the input. Without it, the order of the words would be lost.",
        "input_embeddings",
    ),
    Term(
        "Pre-training",
        ("pre-trained", "pretraining"),
        "The first, long training on plain text without labels.",
        "training_curves",
    ),
    Term(
        "Pseudo-likelihood",
        ("pseudo-log-likelihood",),
        "The product of each word's probability with that word masked: a masked model's score of a sentence.",
        "counterfactuals",
    ),
    Term(
        "Query",
        ("queries",),
        "The vector by which a token looks for others: it is compared with their keys.",
        "neuron",
    ),
    Term(
        "Replaced-token detection",
        ("replaced tokens", "RTD"),
        "The task of telling which words were put in place of others. ELECTRA was trained on it.",
        "replaced_token_detection",
    ),
    Term(
        "Saliency",
        ("attribution", "feature importance"),
        "How much each word contributed to an answer, by some method.",
        "saliency",
    ),
    Term(
        "Segment",
        ("segments", "segment embedding"),
        "Whether a token belongs to text A or to text B. Each of the two has a vector that is added to its tokens.",
        "input_embeddings",
    ),
    Term(
        "Self-attention",
        (),
        "Attention in which the tokens of an input take in one another.",
        "all_heads",
    ),
    Term(
        "Sentence-order prediction",
        ("sentence order", "SOP"),
        "The task of telling whether two texts are in order or swapped. ALBERT has it in place of next sentence.",
        "architectures",
    ),
    Term(
        "SEP token",
        ("[SEP]",),
        "The token that ends each text. Heads that have nothing to look for often look at it.",
        "head_profiles",
    ),
    Term(
        "Softmax",
        (),
        "Makes positive shares that add up to 1 from any scores: exponentials, divided by their sum.",
        "neuron",
    ),
    Term(
        "Token",
        ("tokens", "word piece", "word pieces"),
        "A unit of the input: a word, a piece of one, a mark, or a special token.",
        "predict",
    ),
    Term(
        "Tokenizer",
        ("WordPiece", "tokenization"),
        "Cuts a text into tokens of the model's vocabulary. Rare words become several pieces.",
        "predict",
    ),
    Term(
        "Transformer",
        (),
        "A network of attention and feed-forward layers, published in 2017. BERT is the encoder half of one.",
        "guide",
    ),
    Term(
        "Unknown token",
        ("[UNK]",),
        "Stands for a character or word that the vocabulary does not have. What it was, the model cannot know.",
        "predict",
    ),
    Term(
        "Value",
        ("value vector", "value vectors"),
        "The vector that a token hands over: a head adds up the values with its attention weights.",
        "neuron",
    ),
    Term(
        "Vocabulary",
        ("vocab",),
        "The list of all tokens that a model knows, about 30,000 in BERT.",
        "nearest_words",
    ),
)
