#!/bin/sh
# fetch-region.sh REGION: one search, whose units the crontab has charged, and the details of the videos found.
#
# The details of a video cost 1 unit of the same quota. When the quota is spent, the job ends cleanly, because waiting
# could take hours. A failed search ends the job with its status, and cron reports it.
set -euf
region=$1
# One video per line.
IFS='
'

videos=$("$FETCH" search "$region")
for video in $videos; do
    slidegate check "$KEY" --limit "$QUOTA" --quiet || break
    "$FETCH" video "$video"
done
