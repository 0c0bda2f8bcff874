// PostgreSQL's headers, in the one order that C++ can include them: the standard library first, then these.
// Included by pg/ and by the subjects; nothing else in the extension names a server header.
#pragma once

extern "C" {
#include <postgres.h>

#include <access/htup_details.h>
#include <access/xact.h>
#include <catalog/namespace.h>
#include <catalog/pg_type.h>
#include <commands/dbcommands.h>
#include <common/hashfn.h>
#include <executor/spi.h>
#include <fmgr.h>
#include <funcapi.h>
#include <mb/pg_wchar.h>
#include <miscadmin.h>
#include <nodes/parsenodes.h>
#include <storage/lock.h>
#include <utils/builtins.h>
#include <utils/fmgrprotos.h>
#include <utils/guc.h>
#include <utils/inval.h>
#include <utils/jsonb.h>
#include <utils/lsyscache.h>
#include <utils/memutils.h>
#include <utils/resowner.h>
#include <utils/syscache.h>
#include <utils/timestamp.h>
#include <utils/uuid.h>
}
