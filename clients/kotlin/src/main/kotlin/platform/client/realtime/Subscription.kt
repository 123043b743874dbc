package platform.client.realtime

import kotlinx.coroutines.channels.Channel
import kotlinx.serialization.json.JsonArray
import kotlinx.serialization.json.JsonElement
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive
import kotlinx.serialization.json.booleanOrNull
import kotlinx.serialization.json.longOrNull
import platform.client.PlatformException
import platform.client.QueryState
import platform.client.text

/** Conditions of a subscription; more of them become one filter in a group. */
private const val CONDITIONS_MAX = 5

/** Changes that wait for a slow collector. With more of them, the list is read again instead. */
private const val WAITING_MAX = 2_000

/** Thing that a subscription tells. */
internal sealed interface Event {
    /** The list is to be read, and what was known is to be replaced by it. */
    object Reload : Event

    /** A record came, changed or went (null). [isPartial]: it is too large, and is to be read by its id. */
    class Changed(val type: String, val id: String, val record: JsonObject?, val isPartial: Boolean) : Event
}

/** Subscription to the changes of a table, resumed by their numbers after a lost connection. */
internal class Subscription(id: String, private val channel: String, private val state: QueryState) : Route(id) {
    private val waiting = Channel<Event>(WAITING_MAX)

    /** Whether changes were dropped since the last reload. */
    @Volatile
    private var hasDropped = false
    private var feed: String? = null
    private var link: Link? = null

    /** Number of the last change; null: the next subscription begins anew. */
    private var seq: Long? = null

    override fun opened(link: Link) {
        this.link = link
        val filters = if (state.where.size > CONDITIONS_MAX) listOf(mapOf("and" to listOf(state.where))) else state.where
        val given = mapOf("filters" to filters.ifEmpty { null }, "orFilters" to state.orWhere.ifEmpty { null }, "since" to seq)
        link.send(mapOf("type" to "subscribe", "id" to id, "channel" to channel) + given.filterValues { it != null })
    }

    override fun lost() {
        feed = null
        link = null
    }

    override fun failed(problem: PlatformException) {
        waiting.close(problem)
    }

    override fun received(message: JsonObject) {
        when (message.text("type")) {
            "subscribed" -> subscribed(message)
            "db_change" -> changed(message)
            "batch_changes" -> (message["changes"] as? JsonArray).orEmpty().forEach { if (it is JsonObject) changed(it) }
        }
    }

    private fun subscribed(message: JsonObject) {
        val sources = link?.sources ?: return
        feed?.let { sources.remove(it) }
        feed = message.text("feed")?.also { sources[it] = this }
        if (seq == null || message.isTrue("resync")) put(Event.Reload)
        takeNumber(message)
    }

    private fun changed(change: JsonObject) {
        val id = change.text("docId") ?: return
        put(Event.Changed(change.text("changeType").orEmpty(), id, change["data"] as? JsonObject, change.isTrue("truncated")))
        takeNumber(change)
    }

    private fun takeNumber(message: JsonObject) {
        val number = (message["seq"] as? JsonPrimitive)?.longOrNull ?: return
        seq = maxOf(seq ?: 0, number)
    }

    private fun put(event: Event) {
        if (!waiting.trySend(event).isSuccess) hasDropped = true
    }

    /** Returns the next event, however long it takes. Errors: [PlatformException] when it has ended. */
    suspend fun next(): Event = if (takeDropped()) Event.Reload else waiting.receive()

    /** Returns the next event, if one is there already. */
    fun poll(): Event? = if (takeDropped()) Event.Reload else waiting.tryReceive().getOrNull()

    /** Returns whether changes were dropped. Older ones that still wait go, too: after the list they would bring back the past. */
    private fun takeDropped(): Boolean {
        if (!hasDropped) return false
        hasDropped = false
        while (waiting.tryReceive().isSuccess) Unit
        return true
    }
}

internal fun JsonObject.isTrue(name: String): Boolean = (get(name) as? JsonPrimitive)?.booleanOrNull == true

internal fun idOf(record: JsonElement): String = (record as? JsonObject)?.text("id").orEmpty()
