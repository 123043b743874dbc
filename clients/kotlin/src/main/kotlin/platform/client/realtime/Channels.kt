package platform.client.realtime

import kotlinx.coroutines.channels.BufferOverflow
import kotlinx.coroutines.channels.Channel
import kotlinx.coroutines.flow.Flow
import kotlinx.coroutines.flow.distinctUntilChanged
import kotlinx.coroutines.flow.flow
import kotlinx.serialization.json.JsonArray
import kotlinx.serialization.json.JsonElement
import kotlinx.serialization.json.JsonNull
import kotlinx.serialization.json.JsonObject
import platform.client.PlatformException
import platform.client.text

/** Messages that wait for a slow collector; with more of them, the oldest are dropped. */
private const val WAITING_MAX = 1_000

/** Entry of a presence channel: one for each connection, so a user may have several. */
public data class PresenceEntry(public val userId: String, public val connectionId: String, public val state: JsonObject)

/** Message of a broadcast channel. */
public data class BroadcastEvent(public val event: String, public val data: JsonElement)

/** Thing that a collector of a channel gets. */
internal sealed interface Told {
    object Listening : Told
    class Present(val entries: List<PresenceEntry>) : Told
    class Heard(val event: BroadcastEvent) : Told
}

/** Presence or broadcast channel on the connection, shared by all that use it. */
internal class Topic(private val realtime: Realtime, val channel: String) : Route(channel) {
    private val listeners = ArrayList<Channel<Told>>()
    private val present = LinkedHashMap<String, PresenceEntry>()
    private var isListening = false

    /** Number of those that are about to send. */
    private var senders = 0

    /** State that this client shows, sent again on each connection. */
    private var tracked: JsonElement? = null

    override fun opened(link: Link) {
        link.sources[channel] = this
        if (listeners.isNotEmpty()) link.send(mapOf("type" to "subscribe", "channel" to channel))
        tracked?.let { link.send(mapOf("type" to "track", "channel" to channel, "state" to it)) }
    }

    override fun lost() {
        isListening = false
    }

    override fun failed(problem: PlatformException) {
        tracked = null
        listeners.forEach { it.close(problem) }
    }

    override fun received(message: JsonObject) {
        when (message.text("type")) {
            "subscribed" -> {
                isListening = true
                tell(Told.Listening)
            }
            "broadcast_event" -> tell(Told.Heard(BroadcastEvent(message.text("event").orEmpty(), message["data"] ?: JsonNull)))
            "presence_sync" -> {
                present.clear()
                (message["users"] as? JsonArray).orEmpty().forEach { if (it is JsonObject) put(it) }
                tellPresent()
            }
            "presence_join", "presence_update" -> {
                put(message)
                tellPresent()
            }
            "presence_leave" -> {
                present.remove(message.text("connectionId"))
                tellPresent()
            }
        }
    }

    private fun put(entry: JsonObject) {
        val connectionId = entry.text("connectionId") ?: return
        val state = entry["state"] as? JsonObject ?: JsonObject(emptyMap())
        present[connectionId] = PresenceEntry(entry.text("userId").orEmpty(), connectionId, state)
    }

    private fun tellPresent() = tell(Told.Present(present.values.toList()))

    private fun tell(told: Told) = listeners.forEach { it.trySend(told) }

    fun listen(listener: Channel<Told>, link: Link?) {
        listeners += listener
        if (listeners.size == 1) link?.send(mapOf("type" to "subscribe", "channel" to channel))
        else if (isListening) {
            listener.trySend(Told.Listening)
            listener.trySend(Told.Present(present.values.toList()))
        }
    }

    fun unlisten(listener: Channel<Told>, link: Link?) {
        listeners -= listener
        if (listeners.isEmpty()) {
            isListening = false
            link?.send(mapOf("type" to "unsubscribe", "channel" to channel))
        }
        removeUnused()
    }

    /** Sends a message and waits for its answer; a state that is shown stays so over lost connections. */
    suspend fun ask(message: Map<String, Any?>) {
        senders++
        try {
            realtime.ask(this, message + ("channel" to channel))
        } finally {
            senders--
            removeUnused()
        }
    }

    suspend fun track(state: JsonElement) {
        val before = tracked
        tracked = state
        try {
            ask(mapOf("type" to "track", "state" to state))
        } catch (problem: PlatformException) {
            // Without an answer it is shown as soon as the connection is back.
            if (problem.status != 0 && tracked === state) tracked = before
            removeUnused()
            throw problem
        }
    }

    suspend fun untrack() {
        if (tracked == null) return
        tracked = null
        ask(mapOf("type" to "untrack"))
    }

    private fun removeUnused() {
        if (listeners.isEmpty() && senders == 0 && tracked == null) realtime.remove(this)
    }
}

/** Returns what a channel tells. */
private fun told(realtime: Realtime, channel: String): Flow<Told> = flow {
    val listener = Channel<Told>(WAITING_MAX, BufferOverflow.DROP_OLDEST)
    val topic = realtime.withTopic(channel) { topic -> topic.also { it.listen(listener, realtime.linkOf(it)) } }
    try {
        for (one in listener) emit(one)
    } finally {
        realtime.atEnd { realtime.attempting { topic.unlisten(listener, realtime.linkOf(topic)) } }
    }
}

/** Users of a channel. Errors: [PlatformException]; 401 and 403 where the rights end. */
public class Presence internal constructor(private val realtime: Realtime, private val channel: String) {
    /** Entries of the channel, at first and after each change; the last known ones while the connection is lost. */
    public val entries: Flow<List<PresenceEntry>> =
        flow { told(realtime, channel).collect { if (it is Told.Present) emit(it.entries) } }.distinctUntilChanged()

    /** Shows this client with a state of at most 1 KB until [untrack], also on each new connection. */
    public suspend fun track(state: Map<String, Any?>) {
        val sent = platform.client.jsonOf(state)
        realtime.withTopic(channel) { it.track(sent) }
    }

    /** Shows this client no longer. */
    public suspend fun untrack(): Unit = realtime.withTopic(channel) { it.untrack() }
}

/** Messages of a channel, which are not stored. Errors: [PlatformException]; 401 and 403 where the rights end. */
public class Broadcast internal constructor(private val realtime: Realtime, private val channel: String) {
    /** Messages of others. [onListening] is called each time that the subscription is in place: what was said before it is lost. */
    public fun events(onListening: suspend () -> Unit = {}): Flow<BroadcastEvent> = flow {
        told(realtime, channel).collect {
            if (it is Told.Heard) emit(it.event)
            if (it is Told.Listening) onListening()
        }
    }

    /** Sends a message. It is sent once: a lost connection leaves it unknown. */
    public suspend fun send(event: String, data: Any?) {
        val sent = platform.client.jsonOf(data)
        realtime.withTopic(channel) { it.ask(mapOf("type" to "broadcast", "event" to event, "data" to sent)) }
    }
}
