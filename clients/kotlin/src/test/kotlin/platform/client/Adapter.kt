package platform.client

import kotlinx.coroutines.CompletableDeferred
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.Job
import kotlinx.coroutines.SupervisorJob
import kotlinx.coroutines.cancel
import kotlinx.coroutines.flow.toList
import kotlinx.coroutines.launch
import kotlinx.serialization.json.Json
import kotlinx.serialization.json.JsonArray
import kotlinx.serialization.json.JsonElement
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive
import platform.client.realtime.PresenceEntry
import platform.client.realtime.Room
import java.util.concurrent.ConcurrentHashMap

// The client under the conformance suite: one operation for each line of its input.

private class Opened(val client: PlatformClient) {
    val scope = CoroutineScope(SupervisorJob() + Dispatchers.Default)
    val watched = ConcurrentHashMap<String, List<JsonObject>>()
    val jobs = ConcurrentHashMap<String, Job>()
    val present = ConcurrentHashMap<String, List<PresenceEntry>>()
    val rooms = ConcurrentHashMap<String, Room>()
    val said = ConcurrentHashMap<String, MutableList<String>>()
    val heard: MutableList<JsonElement> = java.util.Collections.synchronizedList(ArrayList())
}

private val opened = ConcurrentHashMap<String, Opened>()

private fun JsonObject.string(name: String) = text(name) ?: error("$name is missing")
private fun JsonObject.member(name: String) = get(name) as? JsonObject ?: JsonObject(emptyMap())
private fun JsonObject.list(name: String) = (get(name) as? JsonArray).orEmpty()
private fun JsonObject.texts(name: String) = list(name).map { (it as JsonPrimitive).content }
private fun filterOf(elements: List<JsonElement>) = Filter(elements)

private fun tableOf(open: Opened, args: JsonObject) =
    open.client.db(args.text("namespace") ?: "shared", args.text("instance")).table(args.string("table"))

private fun queryOf(open: Opened, args: JsonObject): Query<JsonObject> {
    val given = args.member("query")
    var query: Query<JsonObject> = tableOf(open, args).where(filterOf(given.list("where")))
    for (condition in given.list("orWhere")) {
        val (field, operator, value) = condition as JsonArray
        query = query.orWhere((field as JsonPrimitive).content, (operator as JsonPrimitive).content, value)
    }
    for (term in given.list("sort")) {
        val (field, direction) = (term as JsonArray).map { (it as JsonPrimitive).content }
        query = query.sort(field, Direction.valueOf(direction.uppercase()))
    }
    if ("limit" in given) query = query.limit(given.long("limit").toInt())
    return query.fields(*given.texts("fields").toTypedArray()).expand(*given.texts("expand").toTypedArray())
}

private fun onlyIf(args: JsonObject) = (args["if"] as? JsonArray)?.let(::filterOf)

/** What has its default belongs to the answer, too. */
private val whole = Json { encodeDefaults = true }

private fun shown(user: User?): Any? = user?.let { whole.encodeToJsonElement(User.serializer(), it) }

private suspend fun records(open: Opened, operation: String, args: JsonObject): Any? = when (operation) {
    "get" -> tableOf(open, args).get(args.string("id"))
    "insert" -> tableOf(open, args).insert(args.member("record"))
    "update" -> tableOf(open, args).update(args.string("id"), args.member("changes"), onlyIf(args))
    "upsert" -> tableOf(open, args).upsert(args.member("record"), args.string("conflictTarget"))
    "delete" -> tableOf(open, args).delete(args.string("id"), onlyIf(args)).let { null }
    "list" -> queryOf(open, args).list(after = args.text("after")).let {
        mapOf("items" to it.items, "total" to it.total, "hasMore" to it.hasMore, "cursor" to it.cursor)
    }
    "all" -> queryOf(open, args).records().toList()
    "count" -> queryOf(open, args).count()
    "aggregate" -> queryOf(open, args).aggregate(args.texts("select"), args.texts("groupBy"))
    "search" -> queryOf(open, args).search(args.string("text")).items
    "batch" -> {
        val updates = args.list("updates").map { it as JsonObject }.map { RecordUpdate(it.string("id"), it.member("data")) }
        val done = tableOf(open, args).batch(args.list("inserts").map { it as JsonObject }, updates, args.texts("deletes"))
        mapOf("inserted" to done.inserted, "updated" to done.updated, "deleted" to done.deleted)
    }
    "transaction" -> open.client.db(args.text("namespace") ?: "shared").transaction(args.list("operations").map { it as JsonObject })
    else -> live(open, operation, args)
}

private suspend fun live(open: Opened, operation: String, args: JsonObject): Any? = when (operation) {
    "watch" -> {
        val name = args.string("name")
        open.jobs[name] = open.scope.launch { queryOf(open, args).limit(1000).live().collect { open.watched[name] = it } }
        null
    }
    "watched" -> open.watched[args.string("name")]?.map { it.string("id") }?.sorted()
    "unwatch" -> open.jobs.remove(args.string("name"))?.cancel().let { null }
    "follow" -> {
        val channel = args.string("channel")
        open.scope.launch { open.client.presence(channel).entries.collect { open.present[channel] = it } }
        null
    }
    "present" -> open.present[args.string("channel")].orEmpty().map { mapOf("userId" to it.userId, "state" to it.state) }
    "track" -> open.client.presence(args.string("channel")).track(args.member("state")).let { null }
    "untrack" -> open.client.presence(args.string("channel")).untrack().let { null }
    "listen" -> {
        val listening = CompletableDeferred<Unit>()
        open.scope.launch {
            open.client.broadcast(args.string("channel")).events { listening.complete(Unit) }.collect {
                if (it.event == args.string("event")) open.heard += it.data
            }
        }
        listening.await().let { null }
    }
    "say" -> open.client.broadcast(args.string("channel")).send(args.string("event"), args["data"]).let { null }
    "heard" -> open.heard.toList()
    "join" -> {
        val id = args.string("room")
        val room = open.client.joinRoom("board", id)
        open.rooms[id] = room
        val said = open.said.getOrPut(id) { java.util.Collections.synchronizedList(ArrayList()) }
        open.scope.launch { room.messages.collect { message -> said += (message.data as JsonObject).string("text") } }
        null
    }
    "act" -> open.rooms.getValue(args.string("room")).act(args.string("type"), args["payload"])
    "room" -> args.string("room").let { mapOf("shared" to open.rooms.getValue(it).states.value.shared, "said" to open.said.getValue(it).toList()) }
    else -> error("There is no operation $operation")
}

private suspend fun perform(name: String, operation: String, args: JsonObject): Any? {
    if (operation == "hello") return mapOf("supports" to listOf("files", "live", "presence", "broadcast", "rooms"))
    if (operation == "open") {
        opened[name] = Opened(PlatformClient(args.string("url"), args.text("serviceKey")))
        return null
    }
    val open = opened.getValue(name)
    val client = open.client
    return when (operation) {
        "close" -> {
            open.scope.cancel()
            client.close()
            opened.remove(name)
            null
        }
        "signUp" -> shown(client.auth.signUp(args.string("email"), args.string("password")))
        "signIn" -> shown(client.auth.signIn(args.string("email"), args.string("password")))
        "signOut" -> client.auth.signOut().let { null }
        "user" -> shown(client.auth.user)
        "upload" -> {
            val content = args.string("text").toByteArray()
            val stored = client.storage(args.string("bucket")).upload(args.string("key"), content, args.string("contentType"))
            mapOf("key" to stored.key, "size" to stored.size)
        }
        "download" -> String(client.storage(args.string("bucket")).download(args.string("key")))
        else -> records(open, operation, args)
    }
}

private suspend fun answer(line: String) {
    val call = json.parseToJsonElement(line) as JsonObject
    val outcome = try {
        mapOf("result" to perform(call.string("client"), call.string("do"), call.member("with")))
    } catch (error: PlatformException) {
        val codes = error.fields.mapValues { it.value.code }
        mapOf("error" to mapOf("status" to error.status, "message" to error.message, "fields" to codes))
    } catch (problem: Exception) {
        mapOf("error" to mapOf("status" to -1, "message" to problem.toString()))
    }
    println(jsonOf(outcome + ("id" to call.long("id"))))
}

fun main() {
    val scope = CoroutineScope(SupervisorJob() + Dispatchers.IO)
    for (line in generateSequence(::readLine)) scope.launch { answer(line) }
}
