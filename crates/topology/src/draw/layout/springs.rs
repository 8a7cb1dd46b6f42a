//! Connected switches attract each other, and all switches repel one another (T. Fruchterman, E.
//! Reingold, "Graph drawing by force-directed placement", 1991). They start from a circle. Hosts
//! stand right below their switch.

use super::{Item, neighbours};
use crate::graph::Graph;

pub(super) fn lay(graph: &Graph, items: &mut [Item], item_of: &[usize]) {
    let switches = graph.switches().count();
    let mut points = circle(switches);
    if switches <= SPRING_MAX {
        relax(graph, item_of, &mut points);
    }
    let scale = APART * (switches as f64).sqrt() * if switches > SPRING_MAX { 4.0 } else { 1.0 };
    for (item, point) in items.iter_mut().zip(&points) {
        (item.x, item.y) = (scale * point.0, scale * point.1);
    }
    let mut below = vec![0u32; switches];
    for at in switches..items.len() {
        let homes: Vec<usize> = neighbours(graph, &items[at]).map(|switch| item_of[switch]).collect();
        let Some(first) = homes.iter().min() else { continue };
        below[*first] += 1;
        let down = BELOW * f64::from(below[*first]);
        let mean =
            |value: fn(&Item) -> f64| homes.iter().map(|home| value(&items[*home])).sum::<f64>() / homes.len() as f64;
        (items[at].x, items[at].y) = (mean(|item| item.x), mean(|item| item.y) + down);
    }
}

fn circle(count: usize) -> Vec<(f64, f64)> {
    let angle = |i: usize| std::f64::consts::TAU * i as f64 / count as f64;
    (0..count).map(|i| (angle(i).cos(), angle(i).sin())).collect()
}

fn relax(graph: &Graph, item_of: &[usize], points: &mut [(f64, f64)]) {
    let natural = 1.4 / (points.len() as f64).sqrt();
    let trunks: Vec<(usize, usize)> = graph
        .links()
        .iter()
        .filter(|link| link.ends.iter().all(|end| !graph.is_host(*end)))
        .map(|link| (item_of[link.ends[0]], item_of[link.ends[1]]))
        .collect();
    for round in 0..ROUNDS {
        let mut forces = vec![(0.0, 0.0); points.len()];
        let mut push = |at: usize, other: usize, force: f64, (dx, dy): (f64, f64)| {
            forces[at].0 += dx * force;
            forces[at].1 += dy * force;
            forces[other].0 -= dx * force;
            forces[other].1 -= dy * force;
        };
        for at in 0..points.len() {
            for other in 0..at {
                let (delta, distance) = between(points[at], points[other]);
                push(at, other, natural * natural / (distance * distance), delta);
            }
        }
        for (at, other) in &trunks {
            let (delta, distance) = between(points[*at], points[*other]);
            push(*at, *other, -distance / natural, delta);
        }
        // The steps become smaller and smaller, so that the picture comes to rest.
        let heat = 0.1 * (1.0 - f64::from(round) / f64::from(ROUNDS));
        for (point, (dx, dy)) in points.iter_mut().zip(forces) {
            let length = dx.hypot(dy).max(1e-9);
            point.0 += dx / length * length.min(heat);
            point.1 += dy / length * length.min(heat);
        }
    }
}

fn between(a: (f64, f64), b: (f64, f64)) -> ((f64, f64), f64) {
    let delta = (a.0 - b.0, a.1 - b.1);
    (delta, delta.0.hypot(delta.1).max(1e-3))
}

const ROUNDS: u32 = 300;
/// If there are more switches, they stay on the circle.
const SPRING_MAX: usize = 256;
/// About how far apart switches are, in pixels.
const APART: f64 = 110.0;
/// How far a box of hosts stands below its switch, in pixels.
const BELOW: f64 = 26.0;
