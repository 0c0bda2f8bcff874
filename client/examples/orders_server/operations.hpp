// The operations of openapi.yaml.
// Written by idempotency-openapi operations --cpp; change the description and write it again.
// clang-format off
#pragma once

#include "idempotency/operations.hpp"

namespace orders::operations {

inline const idempotency::Operations::Entry health{
    "GET",
    "/health",
    {.action = "health", .keyed = false, .etag_statuses = {}, .key_required = false}};

inline const idempotency::Operations::Entry list_orders{
    "GET",
    "/api/v1/orders",
    {.action = "orders.list", .keyed = false, .etag_statuses = {}, .key_required = false}};

inline const idempotency::Operations::Entry create_order{
    "POST",
    "/api/v1/orders",
    {.action = "orders.create", .keyed = true, .etag_statuses = {201}, .body_limit = 1048576, .key_required = false}};

inline const idempotency::Operations::Entry replace_order{
    "PUT",
    "/api/v1/orders/{id}",
    {.action = "orders.replace", .keyed = true, .etag_statuses = {200}, .body_limit = 1048576, .key_required = false}};

inline const idempotency::Operations::Entry delete_order{
    "DELETE",
    "/api/v1/orders/{id}",
    {.action = "orders.delete", .keyed = true, .etag_statuses = {}, .body_limit = 1048576, .key_required = false}};

inline const idempotency::Operations::Entry create_token{
    "POST",
    "/api/v1/tokens",
    {.action = "tokens.create", .keyed = true, .etag_statuses = {}, .body_limit = 1048576, .key_required = false}};

inline const idempotency::Operations::Entry create_note{
    "POST",
    "/api/v1/notes",
    {.action = "notes.create", .keyed = false, .etag_statuses = {}, .body_limit = 1048576, .key_required = false}};

}  // namespace orders::operations
