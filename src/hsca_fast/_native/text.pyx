"""The text kernels. Marshalling only, no formulas."""

cimport cython
from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libcpp cimport bool as cbool
from libcpp.memory cimport unique_ptr
from libcpp.span cimport span
from libcpp.string_view cimport string_view
from libcpp.vector cimport vector

from hsca_fast._native.interrupt cimport interrupted, raise_interrupt
from hsca_fast._native.strings cimport StringColumn

import numpy as np

ctypedef const string_view const_string_view
ctypedef const int8_t const_int8
ctypedef const unsigned char const_uchar


cdef extern from "hsca/text/unicode.hpp" namespace "hsca" nogil:
    enum class CharClass:
        pass
    CharClass c_char_class "hsca::char_class"(uint32_t) noexcept
    string_view c_unicode_version "hsca::unicode_version"() noexcept


cdef extern from "hsca/text/function_words.hpp" namespace "hsca" nogil:
    span[const_string_view] c_function_words "hsca::function_words"() noexcept


cdef extern from "hsca/text/byte_class.hpp" namespace "hsca" nogil:
    enum class SimdLevel:
        scalar
        baseline
    string_view c_simd_name "hsca::simd_name"() noexcept


cdef extern from "hsca/parallel.hpp" namespace "hsca" nogil:
    cppclass Stop:
        Stop(cbool (*poll)() noexcept nogil)


cdef extern from "hsca/text/segment.hpp" namespace "hsca" nogil:
    cppclass Segments:
        vector[int64_t] words
        vector[int64_t] sentences
        vector[int64_t] paragraphs
    cbool c_segment "hsca::segment"(string_view, SimdLevel, Segments&, Stop*) except +


cdef extern from "hsca/text/relational.hpp" namespace "hsca" nogil:
    cppclass RelationalConfig:
        size_t window
    cppclass BlockFactors:
        int64_t n_sentences
        int64_t n_tokens
        double breadth
        double clustering
        double carriage
        double continuity
        double strength
    cppclass RelationalDetail:
        vector[double] sentence_scores
        vector[int64_t] token_words
        vector[int64_t] token_sentences
        vector[int64_t] token_stems
        vector[double] stem_scores
        vector[BlockFactors] blocks


cdef extern from "hsca/text/lexicon.hpp" namespace "hsca" nogil:
    enum class CueAt:
        pass
    enum class CueIn:
        pass
    cppclass Cue:
        string_view text
        size_t category
        int32_t weight
        CueAt at
        CueIn in_ "in"

    cppclass WordKey:
        uint64_t low
        uint64_t high
    vector[WordKey] c_cue_words "hsca::cue_words"(string_view) except +

ctypedef const Cue const_cue

cdef extern from "hsca/text/lexicon.hpp" namespace "hsca" nogil:
    cppclass CLexicon "hsca::Lexicon":
        CLexicon(span[const_cue], size_t) except +


cdef extern from "hsca/text/nuance.hpp" namespace "hsca" nogil:
    cppclass NuanceCategory:
        int32_t threshold
        double share
        uint32_t flags
    cppclass NuanceConfig:
        vector[NuanceCategory] categories
        uint32_t positive_flag
        uint32_t negative_flag
        uint32_t neutral_flag
    cppclass CategoryCount:
        int64_t cues
        int64_t weight
        int64_t sentences
    cppclass CueMatch:
        size_t category
        size_t begin
        size_t end
        int32_t weight


cdef extern from "hsca/text/sentiment.hpp" namespace "hsca" nogil:
    cppclass SentimentToken:
        size_t begin
        size_t end
        double valence
    void c_sentiment_compounds "hsca::sentiment_compounds"(span[const_string_view], span[double]) except +


cdef extern from "hsca/text/coherence.hpp" namespace "hsca" nogil:
    cppclass CoherenceParts:
        double length
        double pronouns
        double punctuation
        double clauses
        double edges
        double extent
        double known
        double letters
        double order
        double score
    cppclass NamedConstant:
        string_view name
        double value

ctypedef const NamedConstant const_named_constant

cdef extern from "hsca/text/coherence.hpp" namespace "hsca" nogil:
    cppclass CoherenceTables:
        span[const_uchar] properties
        span[const_uchar] endings
        span[const_int8] letters
        span[const_int8] order
        span[const_named_constant] constants
        uint32_t pause
        uint32_t title
    CoherenceTables c_coherence_tables "hsca::coherence_tables"() noexcept


cdef extern from "hsca/text/order_words.hpp" namespace "hsca" nogil:
    cppclass OrderWord:
        string_view word
        uint8_t order_class

ctypedef const OrderWord const_order_word

cdef extern from "hsca/text/order_words.hpp" namespace "hsca" nogil:
    span[const_order_word] c_order_words "hsca::order_words"() noexcept


cdef extern from "hsca/text/domain.hpp" namespace "hsca" nogil:
    cppclass CDomainModel "hsca::DomainModel":
        CDomainModel(span[const_uchar]) except +
        double half_length() noexcept
        double margin(size_t) noexcept
    uint16_t c_with_cross_domain "hsca::with_cross_domain"(uint16_t) noexcept


cdef extern from "hsca/text/domain_rules.hpp" namespace "hsca" nogil:
    cppclass DomainRule:
        size_t category
        size_t tag
        double threshold


cdef extern from "hsca/text/features.hpp" namespace "hsca" nogil:
    void c_hashed_features "hsca::hashed_features"(string_view, span[float]) except +


cdef extern from "hsca/text/score_text.hpp" namespace "hsca" nogil:
    cppclass CScoringConfig "hsca::ScoringConfig":
        CScoringConfig()
        RelationalConfig relational
        const CLexicon* lexicon
        NuanceConfig nuance
        const CDomainModel* domain_model
        vector[DomainRule] domain_rules
        cbool layer1_only
        SimdLevel simd
    cppclass TextScores:
        TextScores()
        double layer1
        double coherence
        double sentiment
        uint32_t nuance_bits
        uint16_t domain_bits
        int32_t n_sentences
        int32_t n_words
        cbool is_short
    cppclass TextDetail:
        TextDetail()
        RelationalDetail relational
        CoherenceParts coherence
        double[10] domain_scores
        double[10] domain_sums
        vector[CueMatch] cues
        vector[CategoryCount] categories
        vector[SentimentToken] sentiment_tokens
        vector[double] sentence_compounds
    cppclass TextScorer:
        TextScorer(const CScoringConfig&) except +
        cbool score(string_view, Stop&, TextScores&, TextDetail*) except +
    cppclass ScoreColumns:
        ScoreColumns()
        span[double] layer1_score
        span[double] coherence_score
        span[double] sentiment_score
        span[uint16_t] domain_bits
        span[uint32_t] nuance_bits
        span[int32_t] n_sentences
        span[int32_t] n_words
        span[uint8_t] is_short
    cbool c_score_texts "hsca::score_texts"(
        span[const_string_view], const CScoringConfig&, size_t, cbool (*poll)() noexcept nogil, const ScoreColumns&
    ) except +


cdef extern from "hsca/floor.hpp" namespace "hsca" nogil:
    uint64_t c_split_and_hash "hsca::split_and_hash"(span[const_string_view]) noexcept


_LEVELS = {"scalar": <int>SimdLevel.scalar, "baseline": <int>SimdLevel.baseline}


def simd_level():
    """Name of the instructions that classify bytes here."""
    cdef string_view name = c_simd_name()
    return name.data()[:name.size()].decode()


def unicode_version():
    """Unicode version of the character tables."""
    cdef string_view version = c_unicode_version()
    return version.data()[:version.size()].decode()


def char_class(uint32_t code_point):
    """Number of the code point's CharClass."""
    if code_point > 0x10FFFF:
        raise ValueError(f"code_point must be at most 0x10FFFF, not {code_point:#x}")
    return <int>c_char_class(code_point)


def function_words():
    """All listed function words."""
    cdef span[const_string_view] words = c_function_words()
    return tuple(words[i].data()[:words[i].size()].decode() for i in range(words.size()))


def order_words():
    """The class of every listed word whose neighbours coherence looks at."""
    cdef span[const_order_word] words = c_order_words()
    return {words[i].word.data()[:words[i].word.size()].decode(): words[i].order_class for i in range(words.size())}


def coherence_tables():
    """Copies of what coherence was fitted to, by the names of the reference."""
    cdef CoherenceTables tables = c_coherence_tables()
    cdef size_t i
    return {
        "properties": [tables.properties[i] for i in range(tables.properties.size())],
        "pause": tables.pause,
        "title": tables.title,
        "endings": np.array([tables.endings[i] for i in range(tables.endings.size())], np.uint8).reshape(28, 28),
        "order": np.array([tables.order[i] for i in range(tables.order.size())], np.int8).reshape(
            tables.properties.size(), -1
        ),
        "letters": np.array([tables.letters[i] for i in range(tables.letters.size())], np.int8).reshape(27, 27),
        "constants": {
            tables.constants[i].name.data()[:tables.constants[i].name.size()].decode(): tables.constants[i].value
            for i in range(tables.constants.size())
        },
    }


cdef object _to_array(vector[int64_t]& values):
    cdef int64_t[::1] out
    array = np.empty(values.size(), dtype=np.int64)
    cdef size_t i
    if values.size():
        out = array
        for i in range(values.size()):
            out[i] = values[i]
    return array


cdef object _to_floats(vector[double]& values):
    cdef double[::1] out
    array = np.empty(values.size(), dtype=np.float64)
    cdef size_t i
    if values.size():
        out = array
        for i in range(values.size()):
            out[i] = values[i]
    return array


def segment(bytes text not None, str simd="baseline"):
    """(paragraphs, sentences, words) of UTF-8 text: int64[n, 2] arrays of byte offsets."""
    cdef string_view view = string_view(<const char*>text, <size_t>len(text))
    cdef SimdLevel level = <SimdLevel><int>_LEVELS[simd]
    cdef Segments found
    cdef cbool finished
    cdef Stop* stop = new Stop(&interrupted)
    try:
        with nogil:
            finished = c_segment(view, level, found, stop)
    finally:
        del stop
    if not finished:
        raise_interrupt()
    return (
        _to_array(found.paragraphs).reshape(-1, 2),
        _to_array(found.sentences).reshape(-1, 2),
        _to_array(found.words).reshape(-1, 2),
    )


def cue_words(list texts not None):
    """The words of each cue as the kernel tells them apart: pairs of integers."""
    cdef bytes text
    cdef vector[WordKey] words
    cdef WordKey word
    found = []
    for text in texts:
        words = c_cue_words(string_view(<const char*>text, <size_t>len(text)))
        found.append(tuple([(word.low, word.high) for word in words]))
    return found


@cython.final
cdef class Lexicon:
    """Cues ready for the kernel.

    cues: (UTF-8 text, category, weight in thousandths, number of CueAt, number of CueIn); categories: (threshold in
    thousandths, share, flag bits); tones: the flag bits of a positive, negative and neutral tone; domain_rules:
    (category, tag, threshold).
    """
    cdef unique_ptr[CLexicon] lexicon
    cdef NuanceConfig nuance
    cdef vector[DomainRule] domain_rules

    def __init__(self, list cues not None, list categories not None, tuple tones not None, list domain_rules not None):
        cdef vector[Cue] given
        cdef Cue cue
        cdef NuanceCategory category
        cdef DomainRule rule
        cdef bytes text
        for text, number, weight, at, within in cues:
            cue.text = string_view(<const char*>text, <size_t>len(text))
            cue.category = number
            cue.weight = weight
            cue.at = <CueAt><int>at
            cue.in_ = <CueIn><int>within
            given.push_back(cue)
        for threshold, share, flags in categories:
            category.threshold = threshold
            category.share = share
            category.flags = flags
            self.nuance.categories.push_back(category)
        self.lexicon.reset(new CLexicon(span[const_cue](given.data(), given.size()), <size_t>len(categories)))
        self.nuance.positive_flag, self.nuance.negative_flag, self.nuance.neutral_flag = tones
        for number, tag, threshold in domain_rules:
            rule.category = number
            rule.tag = tag
            rule.threshold = threshold
            self.domain_rules.push_back(rule)


@cython.final
cdef class DomainModel:
    """The weights of a domain model file."""
    cdef unique_ptr[CDomainModel] model

    def __init__(self, bytes content not None):
        self.model.reset(
            new CDomainModel(span[const_uchar](<const unsigned char*><const char*>content, <size_t>len(content)))
        )

    @property
    def half_length(self):
        """Words at which the evidence has half its weight."""
        return self.model.get().half_length()

    @property
    def margins(self):
        """What the evidence of each tag must outweigh: float64[10]."""
        return np.array([self.model.get().margin(t) for t in range(10)])


@cython.final
cdef class Scorer:
    """Everything a text is scored by. `lexicon` None: Layer 1 alone; `domain_model` None: domains by the rules."""
    cdef CScoringConfig config
    cdef Lexicon lexicon
    cdef DomainModel domain_model

    def __init__(self, Py_ssize_t window, Lexicon lexicon=None, DomainModel domain_model=None, str simd="baseline"):
        self.config.relational.window = <size_t>window
        self.config.simd = <SimdLevel><int>_LEVELS[simd]
        self.config.layer1_only = lexicon is None
        self.lexicon = lexicon
        self.domain_model = domain_model
        if lexicon is not None:
            self.config.lexicon = lexicon.lexicon.get()
            self.config.nuance = lexicon.nuance
            self.config.domain_rules = lexicon.domain_rules
        if domain_model is not None:
            self.config.domain_model = domain_model.model.get()


def score_texts(
    Scorer scorer not None, StringColumn column not None, Py_ssize_t threads, double[::1] layer1_score not None,
    double[::1] coherence_score not None, double[::1] sentiment_score not None, uint16_t[::1] domain_bits not None,
    uint32_t[::1] nuance_bits not None, int32_t[::1] n_sentences not None, int32_t[::1] n_words not None,
    uint8_t[::1] is_short not None,
):
    """Scores every row of `column` into the given arrays. KeyboardInterrupt stops it."""
    cdef size_t n = column.views.size()
    if n == 0:
        return
    if not (
        layer1_score.shape[0] == coherence_score.shape[0] == sentiment_score.shape[0] == domain_bits.shape[0]
        == nuance_bits.shape[0] == n_sentences.shape[0] == n_words.shape[0] == is_short.shape[0] == <Py_ssize_t>n
    ):
        raise ValueError("every column must have one element a text")
    cdef ScoreColumns out
    cdef cbool finished
    out.layer1_score = span[double](&layer1_score[0], n)
    out.coherence_score = span[double](&coherence_score[0], n)
    out.sentiment_score = span[double](&sentiment_score[0], n)
    out.domain_bits = span[uint16_t](&domain_bits[0], n)
    out.nuance_bits = span[uint32_t](&nuance_bits[0], n)
    out.n_sentences = span[int32_t](&n_sentences[0], n)
    out.n_words = span[int32_t](&n_words[0], n)
    out.is_short = span[uint8_t](&is_short[0], n)
    with nogil:
        finished = c_score_texts(
            span[const_string_view](column.views.data(), n), scorer.config, <size_t>threads, &interrupted, out
        )
    if not finished:
        raise_interrupt()


def text_detail(Scorer scorer not None, bytes text not None):
    """Everything the layers know of one text, as a dict; places are byte offsets."""
    cdef string_view view = string_view(<const char*>text, <size_t>len(text))
    cdef TextScores scores
    cdef TextDetail detail
    cdef cbool finished
    cdef Stop* stop = new Stop(&interrupted)
    cdef TextScorer* native = NULL
    try:
        native = new TextScorer(scorer.config)
        with nogil:
            finished = native.score(view, stop[0], scores, &detail)
    finally:
        del native
        del stop
    if not finished:
        raise_interrupt()
    return {
        "layer1_score": scores.layer1,
        "is_short": scores.is_short,
        "n_sentences": scores.n_sentences,
        "n_words": scores.n_words,
        "sentence_scores": _to_floats(detail.relational.sentence_scores),
        "token_words": _to_array(detail.relational.token_words),
        "token_sentences": _to_array(detail.relational.token_sentences),
        "token_stems": _to_array(detail.relational.token_stems),
        "stem_scores": _to_floats(detail.relational.stem_scores),
        "blocks": [
            (b.n_sentences, b.n_tokens, b.breadth, b.clustering, b.carriage, b.continuity, b.strength)
            for b in detail.relational.blocks
        ],
        "coherence": (
            detail.coherence.length, detail.coherence.pronouns, detail.coherence.punctuation, detail.coherence.clauses,
            detail.coherence.edges, detail.coherence.extent, detail.coherence.known, detail.coherence.letters,
            detail.coherence.order, detail.coherence.score,
        ),
        "domain_scores": [detail.domain_scores[i] for i in range(10)],
        "domain_bits": scores.domain_bits,
        "nuance_bits": scores.nuance_bits,
        "cues": [(m.category, m.begin, m.end, m.weight) for m in detail.cues],
        "categories": [(c.cues, c.weight, c.sentences) for c in detail.categories],
        "sentiment": scores.sentiment,
        "sentiment_tokens": [(t.begin, t.end, t.valence) for t in detail.sentiment_tokens],
        "sentence_compounds": _to_floats(detail.sentence_compounds),
    }


def domain_sums(Scorer scorer not None, StringColumn column not None):
    """The linear model's evidence for each tag and the words it is from, which add up over pieces: float64[n, 10], int32[n]."""
    cdef size_t n = column.views.size(), i, t
    sums, words = np.zeros((n, 10)), np.zeros(n, np.int32)
    cdef double[:, ::1] out = sums
    cdef int32_t[::1] n_words = words
    cdef TextScores scores
    cdef TextDetail detail
    cdef cbool finished = True
    cdef Stop* stop = new Stop(&interrupted)
    cdef TextScorer* native = NULL
    try:
        native = new TextScorer(scorer.config)
        with nogil:
            for i in range(n):
                finished = native.score(column.views[i], stop[0], scores, &detail)
                if not finished:
                    break
                n_words[i] = scores.n_words
                for t in range(10):
                    out[i, t] = detail.domain_sums[t]
    finally:
        del native
        del stop
    if not finished:
        raise_interrupt()
    return sums, words


def sentiment_compounds(StringColumn column not None):
    """Compound sentiment of every row, each taken as one piece."""
    cdef size_t n = column.views.size()
    compounds = np.zeros(n, dtype=np.float64)
    cdef double[::1] out = compounds
    if n:
        with nogil:
            c_sentiment_compounds(span[const_string_view](column.views.data(), n), span[double](&out[0], n))
    return compounds


def hashed_features(StringColumn column not None, Py_ssize_t dim):
    """Rows of hashed counts: float32[n, dim]."""
    if not 1 <= dim <= 1 << 20:
        raise ValueError(f"dim must be between 1 and {1 << 20}, not {dim}")
    cdef size_t n = column.views.size(), i
    rows = np.empty((n, dim), dtype=np.float32)
    cdef float[:, ::1] out = rows
    if n:
        with nogil:
            for i in range(n):
                c_hashed_features(column.views[i], span[float](&out[i, 0], <size_t>dim))
    return rows


def with_cross_domain(uint16_t[::1] bits not None):
    """A new array: the tags with cross_domain added where two of them are far apart, or unclassified where there is none."""
    cdef Py_ssize_t i
    result = np.empty(bits.shape[0], dtype=np.uint16)
    cdef uint16_t[::1] out = result
    for i in range(bits.shape[0]):
        out[i] = c_with_cross_domain(bits[i])
    return result


def split_and_hash(StringColumn column not None):
    """The benchmark's floor: lower-case, split and hash every row in a plain loop."""
    cdef uint64_t total
    with nogil:
        total = c_split_and_hash(span[const_string_view](column.views.data(), column.views.size()))
    return total


def segment_rows(StringColumn column not None):
    """Number of words, sentences and paragraphs over all rows, by way of their offset arrays; for the benchmarks."""
    cdef Segments found
    cdef size_t i, words = 0, sentences = 0, paragraphs = 0
    with nogil:
        for i in range(column.views.size()):
            c_segment(column.views[i], SimdLevel.baseline, found, NULL)
            words += found.words.size() // 2
            sentences += found.sentences.size() // 2
            paragraphs += found.paragraphs.size() // 2
    return words, sentences, paragraphs
