#include <sqlite3.h>

/// Ends SQLite's statistics of its memory, before SQLite is used: each allocation would lock a mutex for them. Swift
/// cannot call sqlite3_config, which is variadic. Returns SQLITE_MISUSE, without effect, if SQLite is already in use.
static inline int sqlite_disable_memory_statistics(void) { return sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0); }
