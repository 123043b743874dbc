package platform.client.realtime

import kotlinx.serialization.json.JsonObject

/** Change of a record, as seen through the conditions of the query. */
public sealed interface Change<out R> {
    /** A record came, or matches now. */
    public data class Added<R>(val record: R) : Change<R>

    /** A record changed and still matches. */
    public data class Modified<R>(val record: R) : Change<R>

    /** A record went, or matches no more. */
    public data class Removed(val id: String) : Change<Nothing>

    /** More was missed than can be told: read the list again. Only queries of more than 10,000 records have it. */
    public object Resync : Change<Nothing> {
        override fun toString(): String = "Resync"
    }
}

/** Memory of what a subscription has shown, so that changes that were missed are found by comparing lists. */
internal class Mirror(private val knownMax: Int = KNOWN_MAX) {
    /** Hashes of the records by id, null while nothing is known, or too much to be kept. */
    private var known: HashMap<String, Int>? = null
    private var isTooLarge = false

    /** Whether changes may come that a list has shown already. */
    private var mayRepeat = false

    /** Takes the list as it is now, null if it is too long, and returns what has changed since the one before. */
    fun load(records: List<JsonObject>?): List<Change<JsonObject>> {
        val before = known
        val wasLoaded = before != null || isTooLarge
        mayRepeat = wasLoaded
        isTooLarge = records == null
        known = records?.associateTo(HashMap()) { idOf(it) to it.hashCode() }
        if (!wasLoaded) return emptyList()
        if (before == null || records == null) return listOf(Change.Resync)
        val now = known.orEmpty()
        val changed = records.filter { before[idOf(it)] != now[idOf(it)] }
        return before.keys.filter { it !in now }.map { Change.Removed(it) } +
            changed.map { if (idOf(it) in before) Change.Modified(it) else Change.Added(it) }
    }

    /** Takes a change of the server, and returns it; nothing where the list has shown it already. */
    fun take(type: String, id: String, record: JsonObject?): List<Change<JsonObject>> {
        val present = known
        if (record == null) {
            val wasKnown = present == null || present.remove(id) != null
            return if (wasKnown || !mayRepeat) listOf(Change.Removed(id)) else emptyList()
        }
        val before = present?.put(id, record.hashCode())
        if (present != null && present.size > knownMax) {
            known = null
            isTooLarge = true
        }
        val isNew = if (mayRepeat && present != null) before == null else type == "added"
        if (mayRepeat && present != null && before == record.hashCode()) return emptyList()
        return listOf(if (isNew) Change.Added(record) else Change.Modified(record))
    }

    companion object {
        /** Records that are compared after changes were missed. */
        const val KNOWN_MAX = 10_000
    }
}

