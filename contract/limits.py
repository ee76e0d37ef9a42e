"""Limits of what is asked and stored, and defaults of what is left out; each is written here alone.

Times are in µs unless a name ends in `_S`, sizes in bytes; a limit may be reached.
"""

from __future__ import annotations

MAX_REPORTED = 20  # fields of a refusal that are named

# --- messages, fragments, stages ------------------------------------------------------------------

MAX_MESSAGE_BYTES = 2**48
MAX_STAGES = 64
MAX_RANGES = 64  # of a stage
MAX_NAME_LENGTH = 100
MAX_OVERHEAD_US = 1e12
MAX_NS_PER_BYTE = 1e9
MAX_TIME_US = MAX_OVERHEAD_US  # of a measurement
MAX_ITEMS = 10**6  # of a sequence

# --- machines: lanes, windows, processors ---------------------------------------------------------

MAX_PLACES = 1024  # lanes of a stage; of a trace also fragments of a window, and processors
MAX_WINDOWS = 64
MAX_WINDOW_FRAGMENTS = 2**20
MAX_PROCESSORS = 2  # of two stages each: their lags are tried together
MAX_LAG = 8  # fragments by which a processor's earlier stage is ahead

# --- profiles and fits that are stored ------------------------------------------------------------

MAX_PROFILE_NAME = 64
PROFILE_NAME_RULE = rf"[a-z0-9][a-z0-9._-]{{0,{MAX_PROFILE_NAME - 1}}}"
MAX_REVISION = 999_999_999
MAX_DETAIL = 500  # characters of where the stages came from
REVISION_RULE = r"@[1-9][0-9]{0,8}"
FIT_ID_RULE = r"[0-9a-f]{32}"

# --- measurements, and how they are fitted --------------------------------------------------------

MAX_MEASUREMENTS = 16  # files that are fitted together
MAX_KIND_LENGTH = 32
MAX_FIT_RANGES = 16
DEFAULT_MAX_RANGES = 12
MAX_EXCLUDED = 5_000
MAX_COLUMNS_LENGTH = 500  # of the word that names a table's columns
MAX_WHERE_LENGTH = 300  # of the word that chooses rows by their conditions
MAX_TEST_LENGTH = 60
MAX_RUN = 10_000  # of one file
MAX_ESTIMATED = 1e30  # the square of every cost that a stage may have, and room
DEFAULT_TOLERANCE = 0.03  # of a plan of measurements
MIN_TOLERANCE, MAX_TOLERANCE = 0.001, 0.5
MAX_LISTED_PLACES = 16  # windows, turns and flags of a trace's stages
MAX_REASON = 300  # characters

# --- how sure an answer is ------------------------------------------------------------------------

MIN_DRAWS, MAX_DRAWS = 50, 2000
DEFAULT_DRAWS = 400  # the standard error of a probability is 2.5 % at most
MAX_SEED = 2**64 - 1
MIN_RELATIVE = 0.001
MAX_RELATIVE = 1.0  # deviations that are given: beyond that a cost is not known at all
MAX_INTERVALS = 1000

# --- a search -------------------------------------------------------------------------------------

DEFAULT_RELATIVE_GAP = 1e-6
DEFAULT_TIME_LIMIT_S = 10.0
MAX_TIME_LIMIT_S = 3600.0

# --- comparisons, and cuts that are given ---------------------------------------------------------

MAX_COMPARED = 1_000  # message sizes x strategies in one comparison
NUM_STRATEGIES = 13
MAX_SIMULATED = 200_000  # intervals in one answer; about 12 MB of JSON

# --- own transfers of a message -------------------------------------------------------------------

MAX_ASKED_ROWS = 10_000  # of a request, which a thread decides in seconds
MAX_CONDITIONS = 64  # of a file, whose values are chosen
MIN_TRANSFER_US = 1e-6  # no clock tells shorter times
MAX_BLOCK = 2**48
MAX_CHALLENGE = 256
MAX_BEGAN_S = 1e12

# --- audits of a setting --------------------------------------------------------------------------

DEFAULT_AUDIT_LIMIT_S = 30.0
MAX_AUDIT_LIMIT_S = 60.0  # of the solves; the process of its own is ended at 120 s
MAX_AUDIT_SEQUENCES = 64  # of items, in one audit
MAX_AUDIT_WORKLOAD_SIZES = 512
MAX_WEIGHT = 1e12
MAX_ALLOWED_REGRET = 1e6  # a share
MAX_CONFIGURATION_CHARACTERS = 2**18
MAX_GIVEN_STEPS = 64  # a configuration may have more
MAX_TARGET_LENGTH = 64

# --- hiding behind a calculation ------------------------------------------------------------------

MAX_CALCULATION_US = 1e12
MAX_OVERHEAD = 1e12  # relative to the calculation
MAX_PROCESSES = 10**9
MAX_EXPONENT = 4.0
MAX_HIDDEN_MESSAGES = 10**6  # of an iteration

# --- thresholds -----------------------------------------------------------------------------------

MAX_TRIED_MESSAGES = 1_000
MAX_EVALUATIONS = 20_000  # messages times choices in one question
DEFAULT_THRESHOLDS_LIMIT_S = 10.0

# --- crossovers of two paths ----------------------------------------------------------------------

DEFAULT_CROSSOVER_BYTES = 2**30  # the largest message in question

# --- compiled tables ------------------------------------------------------------------------------

DEFAULT_TABLE_MESSAGE_BYTES = 2**24  # the largest message of a table
DEFAULT_TABLE_GAP = 1e-3
MIN_TABLE_GAP = 1e-6
MAX_COMPILE_S = 100.0  # what is left then is taken as it is; the process is ended at 120 s
DIGEST_RULE = r"[0-9a-f]{64}"  # SHA-256 of a file

# --- exports --------------------------------------------------------------------------------------

MAX_EXPORT_OPTIONS = 32  # of a target, that are given

# --- keys, and stored answers ---------------------------------------------------------------------

MAX_KEY_NAME = 100  # characters
MAX_KEY_AGE_S = 10 * 366 * 86_400
DEFAULT_KEY_KEPT_S = 3600  # how long a key that was exchanged goes on
MAX_KEY_KEPT_S = 30 * 86_400
MAX_KEY_REQUESTS_PER_S = 10**6
MAX_ANSWER_NAME, MAX_NOTE = 100, 2000  # characters

# --- messaging layers -----------------------------------------------------------------------------

NETWORK_FEATURES = ("in_order", "flow_control", "reliable_delivery")
MAX_COMPONENTS = 1000
MAX_LAYER_SOURCE = 500  # characters
MAX_WORD_BYTES = 2**12
MAX_PACKET_WORDS = 2**20
MAX_PACKETS = 2**40
MAX_CROSSINGS = 1000
CLASS_RULE = r"[a-z][a-z0-9_]{0,31}"  # of instructions
MAX_CLASSES = 32
MAX_CLASS_COUNT = 1e9  # of instructions
MAX_CYCLES = 1e9  # of an instruction
MAX_CLOCK_MHZ = 1e6
MAX_LAYER_MESSAGES = 64  # of one question
MAX_PACKET_SIZES = 200
