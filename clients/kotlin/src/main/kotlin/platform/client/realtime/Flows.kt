package platform.client.realtime

import kotlinx.coroutines.delay
import kotlinx.coroutines.flow.Flow
import kotlinx.coroutines.flow.flow
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive
import kotlinx.serialization.json.booleanOrNull
import platform.client.Outgoing
import platform.client.PlatformException
import platform.client.Query
import platform.client.QueryState
import platform.client.asObject
import platform.client.objects
import platform.client.pathOf
import platform.client.reconnectWait
import platform.client.text

/** Longest page of a list. */
private const val PAGE_MAX = 1_000
private const val LIMIT = 100

/** Changes that are taken before the next list is shown, however many more wait. */
private const val TOGETHER_MAX = 256

private class Listed(val records: List<JsonObject>, val hasMore: Boolean)

/** Runs [work] with a subscription to the conditions of a query, which ends with it. */
private suspend fun Query<*>.subscribed(work: suspend (Subscription) -> Unit) {
    val realtime = database.client.realtime
    transport.restore()
    val subscription = realtime.confined {
        Subscription(realtime.nextId(), database.channel(name), state).also { realtime.add(it) }
    }
    try {
        work(subscription)
    } finally {
        realtime.atEnd { realtime.remove(subscription, mapOf("type" to "unsubscribe", "id" to subscription.id)) }
    }
}

internal fun <R> liveOf(query: Query<R>): Flow<List<R>> = flow {
    val state = query.state
    if (state.near != null || state.fields.isNotEmpty() || state.expand.isNotEmpty()) {
        throw PlatformException(400, "A live query has no near, fields or expand")
    }
    val limit = minOf(state.limit ?: LIMIT, PAGE_MAX)
    val spare = maxOf(3, limit / 10)
    val window = Window(orderOf(state.sort), limit, spare)
    var last: List<JsonObject>? = null
    query.subscribed { subscription ->
        while (true) {
            var event: Event? = subscription.next()
            var taken = 0
            var isStale = false
            while (event != null) {
                if (event is Event.Changed) window.take(event.type, event.id, query.recordOf(event)) else isStale = true
                event = if (++taken < TOGETHER_MAX) subscription.poll() else null
            }
            if (isStale || window.isShort) {
                val listed = query.read(state, limit + spare)
                window.replace(listed.records, listed.hasMore)
            }
            val shown = window.shown
            if (shown != last) {
                last = shown
                emit(shown.map(query::decode))
            }
        }
    }
}

private fun Window.take(type: String, id: String, record: JsonObject?) {
    if (type == "removed" || record == null) remove(id) else put(record)
}

internal fun <R> changesOf(query: Query<R>, onReady: suspend () -> Unit): Flow<Change<R>> = flow {
    val conditions = QueryState(query.state.where, query.state.orWhere)
    val mirror = Mirror()
    var isReady = false
    query.subscribed { subscription ->
        while (true) {
            val event = subscription.next()
            val changes = if (event is Event.Changed) {
                mirror.take(event.type, event.id, query.recordOf(event))
            } else {
                val listed = query.read(conditions, Mirror.KNOWN_MAX)
                mirror.load(listed.records.takeIf { !listed.hasMore })
            }
            if (!isReady) {
                isReady = true
                onReady()
            }
            for (change in changes) emit(change.decoded(query))
        }
    }
}

private fun <R> Change<JsonObject>.decoded(query: Query<R>): Change<R> = when (this) {
    is Change.Added -> Change.Added(query.decode(record))
    is Change.Modified -> Change.Modified(query.decode(record))
    is Change.Removed -> this
    Change.Resync -> Change.Resync
}

/** Returns the record of a change, null where it is gone. */
private suspend fun Query<*>.recordOf(change: Event.Changed): JsonObject? {
    if (!change.isPartial) return change.record
    return try {
        retried { transport.json(Outgoing("GET", path + pathOf(change.id))).asObject() }
    } catch (error: PlatformException) {
        if (error.status == 404) null else throw error
    }
}

/** Reads the first records of a query. A page may be short, since its bytes are limited, too. */
private suspend fun Query<*>.read(state: QueryState, count: Int): Listed {
    val found = ArrayList<JsonObject>()
    var after: String? = null
    while (true) {
        val params = state.copy(limit = minOf(count - found.size, PAGE_MAX)).params() + mapOf("total" to false, "after" to after)
        val answer = retried { transport.json(Outgoing("GET", path, params)).asObject() }
        found += answer.objects("items")
        after = answer.text("cursor")
        val hasMore = (answer["hasMore"] as? JsonPrimitive)?.booleanOrNull == true
        if (!hasMore || after == null || found.size >= count) return Listed(found, hasMore)
    }
}

/** Repeats what fails because the server cannot be reached, as long as it takes. */
private suspend fun <T> retried(work: suspend () -> T): T {
    var failures = 0
    while (true) {
        try {
            return work()
        } catch (error: PlatformException) {
            if (!error.isPassing) throw error
            delay(reconnectWait(failures++))
        }
    }
}
