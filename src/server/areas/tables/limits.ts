// Requests

/** Files that one job compares with the records that have had them. */
export const FILES_PER_JOB = 500;
/** Parts of a form: the record, and files of all its fields. Each file that arrives has an open descriptor. */
export const FORM_PARTS_MAX = 101;
/** Characters of the name of an unknown part that the error message repeats. */
export const PART_NAME_SHOWN_LENGTH = 100;
/** Signed urls: the time that they are good by default and at most, and how many are made in one step, of about a millisecond. */
export const SIGNED_DEFAULT_SECONDS = 60 * 60;
export const SIGNED_MAX_SECONDS = 7 * 24 * 60 * 60;
export const SIGNED_PER_STEP = 200;
/** Attempts to answer a file that is removed meanwhile. */
export const DOWNLOAD_ATTEMPTS_MAX = 2;
/** Characters of the name of a file. */
export const FILE_NAME_LENGTH_MAX = 255;

/** Characters of a record id. */
export const ID_LENGTH_MAX = 256;
/** Default number of records in a page. */
export const LIMIT_DEFAULT = 100;
/** Records of a page; a larger `limit` is clamped to this. */
export const LIMIT_MAX = 1_000;
/** Highest `page` and `offset`. */
export const POSITION_MAX = 999_999_999_999_999;
/** Conditions and groups of a filter, at all levels together. */
export const FILTER_CONDITIONS_MAX = 100;
/** Levels of groups within each other. */
export const FILTER_LEVELS_MAX = 4;
/** Conditions of `orFilter`. */
export const OR_CONDITIONS_MAX = 5;
/** Conditions of a realtime channel: every change is matched against all of them. */
export const CHANNEL_CONDITIONS_MAX = 5;
/** Values of `in` and `not in`. */
export const IN_VALUES_MAX = 1_000;
/** Characters of the text in `contains`, `startsWith` and the like; the time of a search grows with it. */
export const NEEDLE_LENGTH_MAX = 1_000;
/** Fields of `sort`. */
export const SORT_TERMS_MAX = 8;
/** Characters of a path into a JSON field. */
export const PATH_LENGTH_MAX = 512;
/** Characters of a cursor. */
export const CURSOR_LENGTH_MAX = 65_536;
/** Operations of a batch. */
export const BATCH_OPERATIONS_MAX = 500;
/** Records that one batch by filter changes. */
export const BATCH_BY_FILTER_RECORDS_MAX = 500;

// Records

/** Bytes of a record as JSON in a table without `maxRecordSize`. */
export const RECORD_BYTES_MAX = 1024 * 1024;
/** Maximal bytes of a number, a boolean or null as JSON. */
export const SCALAR_BYTES_MAX = 25;
/** First integer that SQLite reads from JSON as a real. */
export const INT64_END = 2n ** 63n;
/** Maximal bytes of one UTF-16 unit as JSON: an escape. */
export const UNIT_BYTES_MAX = 6;
/** Characters of a text tested against a pattern: a pattern of quadratic time takes tens of milliseconds for it. */
export const PATTERN_TEXT_LENGTH_MAX = 10_000;
/** Faulty fields named in an answer; a record with more is refused all the same. */
export const PROBLEMS_MAX = 100;
/** Characters of a value that an error message shows. */
export const SHOWN_LENGTH_MAX = 100;

// Former forms of queries

/** Calls of a former form on one table whose line is looked for, then every so many-th. */
export const FORMER_CALLS_TRACED = 100;
export const FORMER_SAMPLED = 1_000;
/** Lines that are logged. */
export const FORMER_LINES_MAX = 1_000;

// Reads

/**
 * Bytes of the records of one page as JSON. The page ends before the record that would exceed it, but has at least one record.
 */
export const PAGE_BYTES_MAX = 8 * 1024 * 1024;
/**
 * Characters of a record's texts and JSON from which a GET of it takes turns: decoding so much takes up to two milliseconds, and
 * the same record may be requested a thousand times at once.
 */
export const LONG_RECORD_LENGTH = 32 * 1024;
/** Matches that an index finds on the main thread. */
export const QUICK_STEPS_MAX = 2_000;
/** Bytes of the records that an index or R-tree finds, as far as they are compared or sorted on the main thread. */
export const QUICK_STEPS_BYTES = 4 * 1024 * 1024;
/** Records that a list or an aggregate tests on the main thread, once to add their sizes up and once or twice to find the matches: 2 to 4 µs each time. */
export const CANDIDATES_MAX = 1_000;
/** Candidates of all circles in which one list looks for the nearest records on the main thread, 3 µs each, and their bytes. */
export const NEAR_CANDIDATES_MAX = 1_000;
export const NEAR_BYTES_MAX = 2 * 1024 * 1024;
/** Radius in metres of the first circle in which the nearest records are looked for, and those between which it lies. */
export const NEAR_FIRST_METERS = 1_000;
export const NEAR_METERS_MIN = 0.001;
/** Beyond half of the way around the earth. */
export const NEAR_METERS_MAX = 20_100_000;
/** Circles that one list tries on the main thread. */
export const NEAR_STEPS_MAX = 24;
/** Records counted, or skipped before a page, along an index alone, on the main thread: about three milliseconds. */
export const QUICK_INDEX_ROWS_MAX = 200_000;
/** Records that a list tests along an index on the main thread: so many per record of its answer, within these bounds. */
export const TESTED_ROWS_PER_RECORD = 10;
export const TESTED_ROWS_MIN = 200;
export const TESTED_ROWS_MAX = 2_000;
/** Bytes of all tested records; when one of them exceeds its share, the list runs in a query process. */
export const TESTED_BYTES_MAX = 4 * 1024 * 1024;
/** Characters of a list that is kept as text, and of all kept lists. */
export const KEPT_LIST_LENGTH_MAX = 64 * 1024;
export const KEPT_LISTS_LENGTH_MAX = 4 * 1024 * 1024;
/** Characters of the query string of such a list. */
export const KEPT_QUERY_LENGTH_MAX = 1_024;
/** Recently read lists that are remembered, so that the second read is recognised. */
export const RECENT_LISTS_MAX = 1_000;
/** Totals kept for one table of a file, and the characters of a statement and its values up to which one is kept. */
export const TOTALS_MAX = 128;
export const TOTAL_KEY_LENGTH_MAX = 2_000;
/** Characters of the cached statements by shape of requests: of those of one shape, and of all. */
export const SHAPE_LENGTH_MAX = 128 * 1024;
export const SHAPES_LENGTH_MAX = 4 * 1024 * 1024;
/** Records that a batch by filter passes to a read rule that checks each record. */
export const RULE_RECORDS_MAX = 10_000;

/** Paths of `expand`. */
export const EXPAND_PATHS_MAX = 10;
/** References that one path of `expand` follows. */
export const EXPAND_DEPTH_MAX = 3;
/** Records in an answer that refer to one record. */
export const EXPANDED_PER_RECORD_MAX = 100;
/** Records that one path of `expand` adds to an answer: processing them holds the event loop for a few milliseconds. */
export const EXPANDED_RECORDS_MAX = 10_000;
/** Values of a reference that are joined with their table; more are looked up as a list. */
export const JOINED_VALUES_MAX = 128;
/** Estimated bytes of all expanded records of an answer as JSON; like those of a page. */
export const EXPANDED_BYTES_MAX = 8 * 1024 * 1024;

// Aggregates

/** Default number of groups in an answer. */
export const AGGREGATE_GROUPS_DEFAULT = 100;
/** Groups of an answer; a larger `limit` is clamped to this. */
export const AGGREGATE_GROUPS_MAX = 1_000;
/** Names of `select`, of `groupBy` and of `sort`. */
export const AGGREGATE_TERMS_MAX = 16;

// Search

/** Characters of an indexed field that has no `max` of its own. */
export const INDEXED_TEXT_LENGTH_MAX = 100_000;
/** Characters of a search query. */
export const QUERY_LENGTH_MAX = 1_000;
/** Words of a search query. */
export const QUERY_WORDS_MAX = 32;
/** Characters of the shortest word in a trigram index. */
export const TRIGRAM_LENGTH_MIN = 3;
/** Characters of a highlight mark. */
export const MARK_LENGTH_MAX = 32;
/** Bytes of a page of search results as JSON, highlights included. */
export const SEARCH_PAGE_BYTES_MAX = 8 * 1024 * 1024;
/** Matches that are ranked where a rule's filter applies, the newest ones, and records in which a word is counted for that. */
export const RANKED_RECORDS_MAX = 1_000;
/** Records that a rule's filter may show up to which these are looked up before the matches of a search. */
export const VISIBLE_RECORDS_FEW = 10_000;
/** Places of the words of a search in the index up to which it runs on the main thread, and characters of what it may find then. */
export const RARE_PLACES_MAX = 200;
export const RARE_CHARS_MAX = 64 * 1024;
/** Time that a search may run, and that it may wait before it runs. */
export const SEARCH_TIMEOUT_MS = 10_000;

// Instances

/** Default number of instances in a list. */
export const INSTANCES_LISTED_DEFAULT = 100;
/** Counted instances of a user whose files are checked together, and users whose instances were checked. */
export const CREATORS_CHECKED_AT_ONCE = 64;
export const CREATORS_CHECKED_MAX = 10_000;
/** Instances of a list; a larger `limit` is clamped to this. */
export const INSTANCES_LISTED_MAX = 1_000;

// Writes

/**
 * Bytes of the stored records that one request changes or deletes, without the last of them: reading and writing one MiB holds
 * the event loop for up to ten milliseconds, and a short request can name 500 records of 1 MiB.
 */
export const STORED_BYTES_MAX = 4 * 1024 * 1024;
/**
 * Maximal increment of an unbounded integer by a caller that may not read its record: larger numbers could leave the range of
 * integers, which would reveal the stored one.
 */
export const UNREAD_INCREMENT_MAX = 1_000_000;
/** Additional bytes counted per member of an object: reading and writing one takes as long as so many characters of text. */
export const MEMBER_WEIGHT_BYTES = 32;
/**
 * Characters of stored values that the conditions of `if`, or of a batch by filter, examine in one request, for searching in
 * texts, ordering them or comparing JSON: up to 20 ms.
 */
export const CONDITION_COST_MAX = 8 * 1024 * 1024;
/**
 * Records that the relations of `if`, or of a batch by filter for one record, examine; up to 20 ms. A relation counts as
 * RELATION_ROWS more, and one of its conditions as CONDITION_ROWS: each is a statement, which may have to be prepared.
 */
export const RELATED_ROWS_MAX = 10_000;
/** Most records that the relations of one subscription's filter examine for one changed record: 50 such subscriptions hold 20 ms together. */
export const LIVE_RELATED_ROWS_MAX = 1_000;
export const RELATION_ROWS = 15;
export const CONDITION_ROWS = 2;
/** Weights of a byte of stored text, or JSON, that the conditions of such relations search, copy or parse. */
export const RELATED_SEARCH_COST = 8;
export const RELATED_COPY_COST = 12;
export const RELATED_BYTE_COST = 2;
/** Weight of a character compared without case. */
export const ANY_CASE_COST = 8;
/** Weight of a value of `in` and `not in`, and of a character that is only compared for equality. */
export const LISTED_VALUE_COST = 2;
export const SAME_COST = 1 / 16;
/** Values of the conditions of all operations of a transaction. */
export const CONDITION_VALUES_MAX = 10_000;
/** Operations of a transaction. */
export const TRANSACTION_OPERATIONS_MAX = 500;
/** Bytes of a batch's answer from which it is sent in pieces, over several turns of the event loop. */
export const LARGE_ANSWER_BYTES = 128 * 1024;
/** Values of a request from which its bodies are checked and serialised before the transaction: some milliseconds of work. */
export const VALUES_IN_TRANSACTION_MAX = 10_000;
/** Restarts of one write whose record changed while its rule or hook was awaited. */
export const RESTARTS_MAX = 20;
/** Writes waiting for one record. */
export const WAITING_PER_RECORD_MAX = 1_000;
/**
 * Time after which the next write of the record starts anyway, so that a hook that waits for another write of its record cannot
 * block.
 */
export const RECORD_TURN_MAX_MS = 10_000;
/** Tables named in the log when a stop interrupts hooks after writes. */
export const HOOKS_NAMED_MAX = 20;
/** Interval at which a slow rule is logged again. */
export const SLOW_RULE_LOGGED_EVERY_MS = 1_000;

// References

/**
 * Cost of what one request deletes and changes through references, in units of about 5 µs: 1 for a record, 3 for one whose table is
 * itself referred to, more for long or searchable ones. The maximum holds the event loop for less than 50 ms.
 */
export const CASCADE_COST_MAX = 5_000;
/** Cost of one transaction of a deletion in steps: about 10 ms. */
export const STEP_COST_MAX = 2_000;
/** Cost of what a merge of two accounts moves, in its one transaction: 1,500 short records, which take about 15 ms. */
export const MERGE_COST_MAX = 3_000;
/** Moves of references to other records that a file keeps for files that refer to its records: the last ones. */
export const MOVES_MAX = 100_000;
/** Records that a deletion in steps deletes; their ids are in memory until it ends. */
export const STEPPED_RECORDS_MAX = 100_000;
/** Ids read at once while a deletion in steps is planned. */
export const IDS_PER_PAGE = 500;
/** Incomplete pages of ids read per turn of the event loop: a few milliseconds. */
export const PAGES_PER_TURN = 200;
/** Ids of one record's referring records read at once while an account is deleted, and pages read per turn of the event loop. */
export const LEAVING_PAGE_IDS = 100;
export const LEAVING_PAGES_PER_TURN = 50;
/** Steps of a deletion of an account that are in memory, and records on the path to the one that is deleted. */
export const LEAVING_STEPS_MAX = 500;
export const LEAVING_DEPTH_MAX = 100_000;
/** Times that a deletion of an account begins again because others add to what goes. */
export const CASCADE_RESTARTS_MAX = 10;
/** Records looked up to say whether one is deleted with a user. */
export const GOING_LOOKUPS_MAX = 1_000;
/** Referring records read before their cost is computed: few enough to fit in memory at any size. */
export const UNASKED_RECORDS_MAX = 2;

/**
 * Ids of several references that one request adds and removes: each is looked up and linked, which together holds the event loop for
 * about 20 ms.
 */
export const LINKED_IDS_MAX = 5_000;

// Lookups

/** Records that one lookup examines by an index that does not have exactly its matches: about 5 ms. */
export const LOOKUP_EXAMINED_MAX = 10_000;
/** Records that the lookups of one request find. */
export const LOOKUP_RECORDS_MAX = 50_000;
/** Shapes of filters per table whose index is remembered. */
export const LOOKUP_PLANS_MAX = 256;

// Idempotency keys

/** Time for which an answer is kept for its key. */
export const ANSWER_KEPT_MS = 24 * 60 * 60 * 1_000;
/** Bytes of an answer that is kept whole. Of a larger one, the ids of its records are kept. */
export const ANSWER_KEPT_BYTES_MAX = 1024 * 1024;
/** Bytes of the answers that one file keeps whole for one caller; above it ids are kept, up to twice these bytes. */
export const KEPT_BYTES_PER_CALLER_MAX = 64 * 1024 * 1024;
/** Keys that one file keeps for one user, and for one service key. */
export const KEPT_PER_USER_MAX = 100_000;
export const KEPT_PER_SERVICE_KEY_MAX = 1_000_000;
/**
 * Writes with a key between two sweeps, and expired answers that each sweep removes: more than the writes, so that they become
 * fewer.
 */
export const SWEEP_EVERY_WRITES = 8;
export const SWEPT_PER_WRITE = 32;
/** Interval between sweeps of open files, and expired answers that one transaction of a sweep removes: a millisecond or two. */
export const ANSWERS_SWEEP_MS = 60 * 60 * 1_000;
export const SWEPT_AT_ONCE = 200;
/** Pause between two transactions of a sweep. */
export const ANSWERS_SWEEP_PAUSE_MS = 20;
/** Bytes of expired answers, without the last of them, that one transaction removes. */
export const SWEPT_BYTES = 1024 * 1024;
/** Records of a replayed answer that are checked in one turn of the event loop. */
export const REPLAYED_PER_TURN = 20;

/** Number of first, and of last, records that show what a subscription's rule looks up. */
export const SAMPLED_RECORDS = 4;
/** Bytes above which a sampled record is left out. */
export const SAMPLED_RECORD_MAX_BYTES = 16 * 1024;

/** Delay of the first sweep of instances that refer to other files, and its interval: within a day each is up to date. */
export const FOLLOWERS_FIRST_SWEEP_MS = 60 * 60 * 1000;
export const FOLLOWERS_SWEEP_MS = 12 * 60 * 60 * 1000;
/** Pause between two steps of that sweep, and the instances of one. */
export const FOLLOWERS_SWEEP_PAUSE_MS = 50;
export const FOLLOWERS_PER_SWEEP = 20;

// Trials of rules

/** Lookups listed in the answer of a trial; all are counted. */
export const TRACED_LOOKUPS_MAX = 200;
/** Characters of a lookup's filter, and of an error, in the answer of a trial. */
export const TRACED_FILTER_CHARACTERS = 1_000;

/** Number of first, and of last, records by which the bytes of a large table are estimated. */
export const MEASURED_RECORDS = 250;

/** Texts that the function of `embed` gets at once, unless the config says otherwise. */
export const EMBEDDED_AT_ONCE_DEFAULT = 64;
/** Bytes of the texts of one call, unless a single record has more, and characters of a record's text; others are cut off. */
export const EMBEDDED_BYTES_MAX = 1024 * 1024;
export const EMBEDDED_LENGTH_MAX = 32 * 1024;
/** Numbers of a vector. */
export const DIMENSIONS_MAX = 4096;
/** Time that one call of the function may take: for records, and for the text of a search, whose caller waits. */
export const EMBED_TIMEOUT_MS = 60_000;
export const EMBED_QUERY_TIMEOUT_MS = 10_000;
/** Records that one step puts on the list of those that wait, where all of them have to be looked at. */
export const WALKED_PER_STEP = 500;
/** Failed tries after which a record waits for a job of its own kind, which holds back no others. */
export const EMBED_TRIES_EARLY = 3;
/** Failed tries after which a record is set aside, until it changes or its file is opened again: about six hours. */
export const EMBED_TRIES_MAX = 60;
/** Longest time between two tries. */
export const EMBED_RETRY_MAX_MS = 600_000;
/** Places whose jobs are known to wait or to run. The queue knows those of all others. */
export const EMBEDDINGS_KNOWN_MAX = 10_000;
/** Files and tables whose records get vectors at the same time. */
export const EMBEDDINGS_AT_ONCE = 2;
/** Time between two reports of how many vectors there are. */
export const EMBED_PROGRESS_MS = 1_000;
/** Vectors of searched texts that are kept, and how long. */
export const QUERY_VECTORS_MAX = 1_000;
export const QUERY_VECTOR_TTL_MS = 60 * 60 * 1_000;
/** Matches of the words, and nearest records, that a search by meaning takes into account. */
export const HYBRID_DEPTH = 100;
/** The constant of reciprocal rank fusion: a larger one makes the first places count less. */
export const FUSION_CONSTANT = 60;
/** Nearest records of one request. */
export const NEAREST_DEFAULT = 10;
export const NEAREST_MAX = 100;
