/* The protocol of one (principal, key): clients that repeat a request, the sessions that serve them, cleanup, the clock, and faults.
   Checked by tests/model/run; docs/internals/model.md tells what stands for what. Read from top to bottom. */

/* ---- What is checked: each run sets these. A client is ROW, LOCK or PLAIN. ---- */
#ifndef CLIENTS
#define CLIENTS 2
#endif
#ifndef SESSIONS
#define SESSIONS 3    /* with faults one more than clients: a session whose client is gone may still run */
#endif
#ifndef FIRST
#define FIRST ROW
#endif
#ifndef OTHERS
#define OTHERS ROW
#endif
#ifndef FAULTS
#define FAULTS 1      /* processes killed, connections cut, handlers that fail: as many in all */
#endif
#ifndef CLOCK_END
#define CLOCK_END 1   /* the clock reads 0 .. CLOCK_END; a key lives for TTL */
#endif
#define TTL 1
#define NOBODY 255

#define ROW 0     /* begin writes the row in progress, complete updates it */
#define LOCK 1    /* begin takes the lock and only reads, complete writes the completed row */
#define PLAIN 2   /* another writer of the table: as ROW, but it knows no lock and meets the primary key only */

/* ---- The server: what every session sees. ---- */

/* The row of the key. There is a committed one (id 0: none), and the one that an open transaction has written (id 0: it has deleted it).
   The primary key lets one transaction at a time write, so one of each is enough. A row is given its id when it commits. */
typedef Row { byte id; bool completed; byte created_at };
#define NOT_YET 254
Row row;
Row written;
byte writer = NOBODY;         /* the session whose transaction has written */
byte key_lock = NOBODY;       /* the session that holds the advisory lock: key_lock.cpp */
byte now;

/* Broken on purpose, each caught by a test of its own. */
#ifdef LOCK_MODE_WITHOUT_LOCK
#define takes_lock(kind) (kind == ROW)
#else
#define takes_lock(kind) (kind != PLAIN)
#endif

/* Other processes may come between two atomic blocks; without it a goto from one into the next would keep them out. */
#define yield skip

#define expired(r, at) (r.created_at + TTL <= at)
#define other_writer(me) (writer != NOBODY && writer != me)

/* ---- A session: a server process and the connection to it. ---- */
mtype = { begin, complete, save_final, at_once };                            /* what a client sends */
mtype = { started, replay, in_progress, failed, committed, lost };                   /* what it gets */
chan sent[SESSIONS] = [1] of { mtype, byte };                                        /* what, and the client's kind */
chan answer[SESSIONS] = [1] of { mtype };
bool client_end[SESSIONS];    /* the client's end of the connection is open */
bool server_end[SESSIONS];    /* the server process lives */
bool killed[SESSIONS];
bool has_effect[SESSIONS + 1];/* the open transaction holds the effect of the operation */
byte claimed_at[SESSIONS + 1];      /* when the key became this transaction's */
byte effects_before[SESSIONS + 1]; /* effects that had committed when begin's statement began */

/* ---- What the properties need; the protocol does not read these. ---- */
byte rows;                    /* rows that were ever committed */
byte effects;                 /* effects that were ever committed */
byte effect_life_ends;        /* of the last effect */
byte answer_life_ends;        /* of the last final answer that was stored */
byte first_answer;            /* its row */
byte answered;                /* clients that have a final answer */
byte faults = FAULTS;

inline drain_sent(s) {
  do
  :: sent[s]?_,_
  :: empty(sent[s]) -> break
  od
}
inline drain_answer(s) {
  do
  :: answer[s]?_
  :: empty(answer[s]) -> break
  od
}

/* What a transaction leaves when it ends in any way but commit. */
inline roll_back(s) {
  if
  :: writer == s -> writer = NOBODY; written.id = 0; written.completed = false; written.created_at = 0
  :: else
  fi;
  if
  :: key_lock == s -> key_lock = NOBODY
  :: else
  fi;
  has_effect[s] = false
}

/* COMMIT, first half: what it wrote becomes visible at one moment. The properties are stated here. */
inline publish(s, at) {
  if
  :: has_effect[s] ->
    assert(effects == 0 || effect_life_ends <= claimed_at[s]);           /* one effect in the life of a key */
    assert(answer_life_ends == 0 || answer_life_ends <= claimed_at[s]);  /* and none beside a stored final answer */
#ifdef OVERLAP
    assert(effects == effects_before[s]);                     /* none committed since this begin was called */
#endif
    effects++;
    effect_life_ends = at + TTL;
    has_effect[s] = false
  :: else
  fi;
  if
  :: writer == s ->
    if
    :: written.id == NOT_YET -> rows++; written.id = rows
    :: else
    fi;
    if
    :: written.completed ->
      assert(answer_life_ends == 0 || answer_life_ends <= claimed_at[s]);  /* a live answer is not overwritten */
      answer_life_ends = at + TTL;
      first_answer = written.id
    :: else
    fi;
    row.id = written.id; row.completed = written.completed; row.created_at = written.created_at;
    assert(row.id == 0 || row.completed);                     /* nobody leaves a key in progress */
    writer = NOBODY; written.id = 0; written.completed = false; written.created_at = 0
  :: else
  fi
}

/* COMMIT, second half: its locks go a moment later. */
inline unlock(s) {
  if
  :: key_lock == s -> key_lock = NOBODY
  :: else
  fi
}

/* ---- store.cpp. Each statement sees what was committed when it began, and the newest version of what it writes. An atomic block is what
   no other session can come between: one access to shared state, and the local steps around it. ---- */

/* DELETE ... WHERE expires_at <= at, its second half: the row of its snapshot is `target`. It waits for another writer, then looks at the
   newest version again. A row that was deleted and inserted anew is another row, and is left alone. */
inline remove(me, at) {
  atomic {
    if
    :: writer == NOBODY && row.id == target && expired(row, at) -> writer = me; written.id = 0
    :: writer == NOBODY && !(row.id == target && expired(row, at))
    :: other_writer(me) -> roll_back(me); goto fail
    fi;
    target = 0
  }
}

/* INSERT ... ON CONFLICT DO NOTHING. Another transaction that has written the key is waited for, until lock_timeout. */
inline insert(me, as_completed, at) {
  if
  :: writer == me || (writer == NOBODY && row.id == 0) ->
    assert(writer != me || written.id == 0);
    writer = me; written.id = NOT_YET; written.completed = as_completed; written.created_at = at; inserted = true
  :: writer == NOBODY && row.id != 0 -> inserted = false
  :: other_writer(me) -> roll_back(me); goto fail
  fi
}

/* ---- One server process. Where it says `goto fail`, the transaction is rolled back already. ---- */
proctype Session(byte me) {
  byte kind, at, seen, target;
  mtype what;
  bool inserted, since, found, found_completed;
end_without_connection:
  server_end[me];
  {
    what = 0;
serve:
    atomic {
      kind = 0; at = 0; seen = 0; since = false; inserted = false; found = false; found_completed = false; claimed_at[me] = 0; effects_before[me] = 0;
      if
      :: sent[me]?what,kind
      :: !client_end[me] && empty(sent[me]) -> goto disconnected
      fi;
      if
      :: what == complete -> what = 0; goto disconnected    /* without begin: no client does that */
      :: what == save_final -> at = now; goto save
      :: else
      fi;
#ifdef OVERLAP
      effects_before[me] = effects;
#endif
#ifndef FIND_AFTER_TRY
      seen = row.id; since = true           /* the snapshot of the statement that calls begin */
#endif
    }

    /* begin: claim.cpp */
    yield;
    atomic {
      at = now;
#ifdef EFFECT_BEFORE_CLAIM
      has_effect[me] = true; claimed_at[me] = now;
      publish(me, at);
#endif
      if
      :: !takes_lock(kind) -> goto locked
      :: takes_lock(kind) && key_lock == NOBODY -> key_lock = me; goto locked
      :: takes_lock(kind) && key_lock != NOBODY
      fi
    }
#ifdef FIND_AFTER_TRY
    yield;
    seen = row.id;
#endif
    yield;
    atomic {
      if
      :: key_lock == NOBODY -> key_lock = me; since = true
      :: key_lock != NOBODY -> answer[me]!in_progress; goto wait_for_next   /* lock_timeout */
      fi
    }
locked:
    yield;
    /* Store::insert_or_find */
    atomic {
      if
      :: kind == LOCK
      :: else ->
        insert(me, false, at);
        if
        :: inserted -> claimed_at[me] = now; goto started_key
        :: else
        fi
      fi
    }
    yield;
    atomic {
      found = row.id != 0; found_completed = row.completed;
      if
      :: found && (!expired(row, at) || (since && row.id != seen)) ->
        assert(!found_completed || row.id == first_answer);       /* a replay is the first answer */
        roll_back(me);
        if
        :: found_completed -> answer[me]!replay
        :: else -> answer[me]!in_progress
        fi;
        goto wait_for_next
      :: !found && kind != LOCK -> goto locked
      :: kind == LOCK && (!found || (expired(row, at) && !(since && row.id != seen))) ->
        claimed_at[me] = now; goto started_key
      :: else -> target = row.id
      fi
    }
    yield;
    remove(me, at);
    goto locked;
started_key:
    atomic {
      if
      :: what == at_once -> goto complete_key
      :: else -> answer[me]!started
      fi
    }

    /* In the middle of the transaction: the handler's statements, complete and COMMIT come in one flush, or ROLLBACK. */
    atomic {
      if
      :: sent[me]?what,_
      :: !client_end[me] && empty(sent[me]) -> roll_back(me); goto disconnected
      fi;
      if
      :: what == save_final -> roll_back(me); at = now; seen = 0; since = false; goto save
      :: else
      fi
    }
complete_key:
    yield;
    /* complete: answer.cpp. It wants the key's lock. */
    atomic {
      has_effect[me] = true;
      assert(!takes_lock(kind) || key_lock == me);
      if
      :: kind != LOCK -> goto update
      :: else -> target = (row.id != 0 && expired(row, at) -> row.id : 0)
      fi
    }
    yield;
    remove(me, at);
    yield;
    atomic {
      insert(me, true, at);
      if
      :: inserted -> goto commit
      :: else -> roll_back(me); goto fail                         /* 40001 */
      fi
    }
update:
    yield;
#ifdef COMPLETE_APART
    atomic { publish(me, at) }
    yield;
    atomic { writer = me; written.id = row.id; written.created_at = row.created_at }
    yield;
#endif
    written.completed = true;
commit:
    yield;
    atomic { publish(me, at) }
    yield;
    atomic { unlock(me); answer[me]!committed }
wait_for_next:
    atomic { roll_back(me); goto serve };

save:
    /* save_final: answer.cpp, in a transaction of its own. It never waits for the key's lock. */
    atomic {
      if
      :: kind == PLAIN
      :: kind != PLAIN && key_lock == NOBODY -> key_lock = me
      :: kind != PLAIN && key_lock != NOBODY -> answer[me]!committed; goto wait_for_next
      fi
    }
save_row:
    yield;
    atomic {
#ifdef SAVE_FINAL_OVERWRITES
      if
      :: writer == NOBODY -> writer = me; written.id = NOT_YET; written.completed = true; written.created_at = at; claimed_at[me] = now; goto commit
      fi;
#endif
      insert(me, true, at);
      if
      :: inserted -> claimed_at[me] = now; goto commit
      :: else
      fi
    }
    yield;
    atomic {
      if
      :: row.id != 0 && !expired(row, at) -> goto commit
      :: row.id == 0 -> goto save_row
      :: else -> target = row.id
      fi
    }
    yield;
    remove(me, at);
    goto save_row;

fail:
    atomic { answer[me]!failed }
    goto serve;
disconnected: skip
  } unless { killed[me] };
  atomic {
    roll_back(me);
    drain_sent(me);
    if
    :: !client_end[me] -> drain_answer(me)
    :: else
    fi;
    killed[me] = false; server_end[me] = false;
    what = 0; kind = 0; at = 0; seen = 0; target = 0; since = false; inserted = false; found = false; found_completed = false;
    claimed_at[me] = 0; effects_before[me] = 0;
    goto end_without_connection
  }
}

/* ---- cleanup.cpp: one batch after the other, each a transaction. Its two statements stand for one: on a distributed table the expired
   keys are collected first and the rows deleted with a later snapshot. ---- */
proctype Cleanup() {
  byte at, target;
end:
  do
  :: atomic { row.id != 0 && expired(row, now) -> at = now }
    /* The second statement's snapshot. */
    atomic { target = (row.id != 0 && expired(row, at) -> row.id : 0) }
    yield;
#ifdef CLEANUP_WITHOUT_RECHECK
    atomic { writer == NOBODY && row.id != 0 -> writer = SESSIONS; written.id = 0; target = 0 }
#else
    remove(SESSIONS, at);
#endif
    yield;
    atomic {
      assert(writer != SESSIONS || expired(row, now));      /* a live row is never cleaned */
      publish(SESSIONS, at); at = 0; goto end
    }
fail: atomic { at = 0; target = 0 }     /* the row is in use for more than 20 ms: left to the next run */
  od
}

/* ---- An application: the stage, and the caller behind it that repeats the request until it has a final answer. ---- */

#define free(s) (!client_end[s] && !server_end[s])

inline connect() {
  {
    if
    :: free(0) -> s = 0
    :: !free(0) && free(1) -> s = 1
#if SESSIONS > 2
    :: !free(0) && !free(1) && free(2) -> s = 2
#endif
#if SESSIONS > 3
    :: !free(0) && !free(1) && !free(2) && free(3) -> s = 3
#endif
    fi;
    client_end[s] = true; server_end[s] = true
  }
}

/* The server learns that the client is gone when it next reads; what was sent before, it still carries out. */
inline disconnect() {
  client_end[s] = false;
  drain_answer(s);
  if
  :: !server_end[s] -> drain_sent(s)
  :: else
  fi;
  s = 0
}

/* Sends a flush and waits for its answer. The connection may be cut, or the application die, before and after. */
inline ask(flush) {
  got = lost;
  if
  :: sent[s]!flush,kind;
    if
    :: answer[s]?got
    :: !server_end[s] && empty(answer[s])
    :: faults > 0 -> faults--
    fi
  :: faults > 0 -> faults--
  fi
}

proctype Client(byte kind) {
  byte s;
  mtype got;
  atomic {
    do
    :: connect();
#ifdef AT_ONCE
      ask(at_once);                                 /* begin, the effect, complete and COMMIT in one flush */
#else
      ask(begin);
#endif
      if
      :: got == started ->
        if
        :: ask(complete)
        :: ask(save_final);                         /* a final error: the answer counts, stored or not */
          if
          :: got = committed
          :: got == lost                            /* the application died: its caller repeats */
          fi
        :: faults > 0 -> faults--; got = failed     /* the handler fails */
        fi
      :: else
      fi;
      if
      :: got == replay || got == committed -> break
      :: else
      fi;
      got = 0; disconnect()
    od;
    got = 0; disconnect(); answered++
  }
}

proctype Clock() {
end:
  do
  :: now < CLOCK_END -> now++
  od
}

proctype Faults() {
  byte s;
end:
  do
  :: atomic {
      faults > 0 ->
      do
      :: s < SESSIONS - 1 -> s++
      :: break
      od;
      if
      :: server_end[s] && !killed[s] -> killed[s] = true; faults--        /* a server process */
      :: true ->                                                          /* the whole server: its memory is gone, the committed row stays */
        s = 0;
        do
        :: s < SESSIONS -> roll_back(s); killed[s] = server_end[s]; s++
        :: else -> break
        od;
        roll_back(SESSIONS);
        faults--
      fi;
      s = 0
    }
  od
}

init {
  byte i;
  atomic {
    run Client(FIRST);
    i = 1;
    do
    :: i < CLIENTS -> run Client(OTHERS); i++
    :: else -> break
    od;
    for (i : 0 .. SESSIONS - 1) { run Session(i) }
#ifndef NO_CLEANUP
    run Cleanup();
#endif
    run Clock();
    run Faults()
  }
}
